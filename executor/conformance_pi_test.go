package executor_test

var highest = []conform{}

var pi = []conform{}

var tinyAgent = []conform{}
