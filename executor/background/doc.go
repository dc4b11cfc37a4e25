// Package background lets tool calls continue while the model does something else. A call of such a tool gets the result
// "started" at once. Its own result comes later, as a message of the user.
//
//	agent := background.Add(executor.Agent{Provider: model}, build, research)
//	d, err := agent.Run(ctx, dag.New().User("Build it, and meanwhile find out who uses it."))
//
// Any tool can be one, also an executor.SubAgent. The model gets two more tools: "wait_for_work" returns when work is
// done or after some time, and "stop_work" cancels work.
//
// # What is in the conversation
//
// The execution of the call has the result "started", and holds the work: [Open] lists the executions without a message
// yet, also of a conversation that was loaded. All of these end work, each with one message:
//
//   - The tool returns: the message has its result, and a node.SubGraph before it the conversation of a sub-agent.
//   - The tool fails, or is stopped.
//   - A run ended before its work, at a limit for example. Its work is stopped, and the next run of the conversation
//     says so.
//   - The program ended, or a paused run was resumed in another process. The next run starts the work again if the
//     effect of the tool allows it (executor.WithEffect) and the hooks allow exactly what was started. Otherwise the
//     message is that the outcome is unknown.
//
// A message comes after a turn. A run does not end before its work: after the model's last response it waits for the
// next message. A message in Agent.Steering ends the wait. Work continues while its run is paused.
//
// # Limits
//
//   - Work has no timeout but that of executor.WithTimeout. Prepare and Before hooks decide about the call, After hooks
//     see the result of the work.
//   - A sub-agent in the background cannot pause: its calls that need approval fail. An executor.Fork cannot be one.
//   - In a durable run, work is part of the run's job. What has to survive the process is a deferred call.
//
// # Concurrency
//
// The agent is safe for concurrent use, as every agent. A tool may still run when other tools of the conversation do.
package background
