"""Each of the six strategies gives every member the queues that the table says.

The table lists, for a strategy with its settings, the queues and the members as the client has sorted them, and what
each member takes, in order: contiguous blocks, every c-th queue, a fixed list, the listed machine rooms, machine rooms
near the member, a ring of hashes; with more members than queues, with no queue at all, with an id that is listed
twice, and for a client that the list does not name. A history shows shares but not which strategy made them, so this
is compared with the functions themselves.
"""

from specs.vocabulary import Party

ID = "ASG-3"
TITLE = "each strategy is its table"
STATEMENT = "Each allocation strategy gives every member exactly the queues that its table says."
PARTY = Party.CLIENT
PREMISE = ()
SOURCES = ("docs/sources.md#assignment",)
VECTORS = "allocation.json"
