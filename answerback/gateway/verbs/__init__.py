"""What a caller can do, whatever the door: one list of verbs."""
