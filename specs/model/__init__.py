"""The abstract model: for each request, the answers that are allowed in the present abstract state.

A real broker is watched from outside: a request takes effect somewhere between its begin and its end, and one
without an answer may or may not have happened. So the model is non-deterministic: it keeps every state that is
still possible, an answer removes those that it contradicts, and when none is left the broker broke a rule.
"""
