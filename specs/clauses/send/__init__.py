"""SND: what a broker keeps of what it was sent."""
