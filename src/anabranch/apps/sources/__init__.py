"""Where rows come from: folders of files and the built-in generator; topics are in kafka."""
