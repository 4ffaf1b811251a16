"""Tools for whoever works on anabranch; not part of the package."""
