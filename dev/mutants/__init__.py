"""Would a test notice? Small changes of the source, each tried against the tests that are mapped to its file."""
