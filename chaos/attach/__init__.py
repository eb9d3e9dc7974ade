"""Somebody's own clients in her own containers, broken on purpose while the tap watches: `inorder chaos --attach FILE`.

`compose` reads her file, `hers` finds her containers and what may be done to each (and touches nothing), `standing`
puts copies of her clients in their place that find the tap under the name server's name, `breaking` has the faults,
`sight` is what the tap has seen so far, and `run` makes the run and its verdict of it.
"""
