"""Tools for whoever works on anabranch; not part of the package."""

# For Java that lives for minutes and waits most of the time: to compile it well takes longer than it runs.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
