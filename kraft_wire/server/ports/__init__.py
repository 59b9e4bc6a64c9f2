"""The ports on which the owner executes effects: files, and work beside the event loop."""
