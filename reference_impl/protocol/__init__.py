"""The RocketMQ remoting protocol: frames, headers, bodies and the stored message layout."""
