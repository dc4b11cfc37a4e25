package executor_test

var phi, agentCore, cortex []conform
