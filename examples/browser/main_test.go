package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

func Example() {
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	out, in := io.Pipe()
	ended := make(chan error)
	go func() { ended <- program{out: in}.run(ctx) }()
	lines := bufio.NewScanner(out)

	lines.Scan()
	address, _, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "Open "), "#")
	res, err := http.Get(address)
	if err != nil {
		fmt.Println(err)
		return
	}
	res.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	fmt.Println(res.Status, res.Header.Get("Content-Type"))

	lines.Scan()
	fmt.Println(lines.Text())
	interrupt()
	fmt.Println(<-ended)
	// Output:
	// 200 OK text/html; charset=utf-8
	// I found: 22°C, 18°C, 25°C.
	// <nil>
}
