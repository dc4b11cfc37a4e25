package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/agui"
	"github.com/plait-dev/plait/executor/durable"
)

// This file has the processes of a shop, which kill.go kills: a service for web front ends (AG-UI), runners of the agent,
// and clerks, who execute its calls.

// service serves web front ends. It executes nothing, and has no state: clients go to any service.
func service(ctx context.Context, database string) error {
	engine, closeAll, err := open(ctx, database, &durable.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	server := &http.Server{
		Handler: agui.Durable(engine.Front("shop"), &agui.Options{Log: slog.Default()}), ReadHeaderTimeout: 10 * time.Second,
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends when the first process does
		_ = server.Close()
	}()
	err = server.Serve(listener)
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, closeAll())
}

// runner returns the options of a process that executes runs of the shop.
func runner() *durable.Options {
	agent := executor.Agent{
		Provider: apitest.NewScript(apitest.Func(answer).Always()),
		Tools:    clerkTools(entry("", ""), entry("", "")), // their definitions: clerks execute them
		Strategy: executor.DeferAll(),
	}
	return &durable.Options{Agents: map[string]executor.Agent{"shop": agent}, Log: slog.New(slog.DiscardHandler)}
}

// answer is the model of the shop. It refunds an order and writes a letter, and then says so.
func answer(req api.Request) apitest.Turn {
	pause := time.Duration(rand.N(30)) * time.Millisecond
	last := req.Messages[len(req.Messages)-1].Blocks
	if len(last.ToolResults()) > 0 {
		return apitest.Say("It was refunded.").Wait(pause)
	}
	o := order{last.Text()}
	return apitest.Call(apitest.Use("refund", o), apitest.Use("write_letter", o)).Wait(pause)
}

// clerk returns the options of a process that executes calls.
func clerk(books string) *durable.Options {
	var tools []executor.Tool
	for _, t := range clerkTools(entry(books, "refund"), entry(books, "letter")) {
		tools = append(tools, t.(executor.Tool))
	}
	group := durable.Worker{Tools: tools, Concurrency: 8}
	return &durable.Options{Workers: []durable.Worker{group}, Log: slog.New(slog.DiscardHandler)}
}

// clerkTools returns the tools. A refund may be repeated, because the bank knows its key. A letter may not: nobody can
// know whether it was sent when a clerk was killed.
func clerkTools(refund, letter func(context.Context, order) (string, error)) []dag.Tool {
	return []dag.Tool{
		executor.WithEffect(executor.Func("refund", "Refunds an order.", refund), executor.EffectIdempotent),
		executor.Func("write_letter", "Writes to the customer.", letter),
	}
}

// entry returns the function of a tool. It writes a line into the books, which stand for the world outside: what is
// there has happened.
func entry(books, what string) func(context.Context, order) (string, error) {
	return func(ctx context.Context, in order) (string, error) {
		time.Sleep(time.Duration(rand.N(20)) * time.Millisecond)
		file, err := os.OpenFile(books, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return "", err
		}
		defer file.Close()
		_, err = fmt.Fprintf(file, "%s %s %s\n", what, in.Number, executor.IdempotencyKey(ctx))
		time.Sleep(time.Duration(rand.N(20)) * time.Millisecond)
		return what + " done", err
	}
}
