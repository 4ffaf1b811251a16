"""One application from start to stop: its session, checkpoint, query and what it has to say."""
