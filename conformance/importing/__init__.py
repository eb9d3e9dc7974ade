"""Anybody's log becomes a history: a map says which of its lines are events, and where each column comes from.

*sources* reads a log line by line (CSV, JSON lines, text), *mapping* reads the map, *events* turns lines into marks
(the begin or the end of an operation, or both), *timeline* puts the marks in order and makes rows of them, *writing*
writes these, *reach* says what a judge will be able to see in them, *job* does all of it, and *report* tells of it.

What the log does not tell is left out, never filled in: a map has to say what a line's moment is, in which time zone it
was written, by whose clock, and which kinds of events the log would have told.
"""
