"""ORD: in which order messages are sent, stored and delivered."""
