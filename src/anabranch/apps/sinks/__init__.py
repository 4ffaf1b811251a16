"""Where answers and malformed rows go: folders, memory, the console; topics are in kafka."""
