"""Locations: which file system a path or URI is on, and the path there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyarrow import fs

from anabranch.errors import InputError
from anabranch.location import absolute, is_local, locate


@pytest.mark.parametrize("uri", ["/data/state", "file:/data/state", "file:///data/state", "FILE:///data/state"])
def test_a_file_is_local_however_it_is_written(uri):
    assert is_local(uri)
    assert absolute(uri) == "/data/state"
    filesystem, path = locate(uri)
    assert isinstance(filesystem, fs.LocalFileSystem)
    assert path == "/data/state"


@pytest.mark.parametrize("relative", ["state", "file:state", "a:b/c"])
def test_a_relative_path_begins_in_the_folder_of_this_process(relative):
    assert is_local(relative)
    assert absolute(relative) == str(Path.cwd() / relative.removeprefix("file:"))


def test_another_scheme_is_left_to_pyarrow():
    assert not is_local("mock:///a/b")
    assert absolute("mock:///a/b") == "mock:///a/b"
    filesystem, path = locate("mock:///a/b")
    assert (filesystem.type_name, path) == ("mock", "a/b")


def test_a_scheme_that_nobody_opens_is_named_with_both_reasons():
    with pytest.raises(InputError) as caught:
        locate("nonsense://bucket/state")
    assert str(caught.value).startswith("nonsense://bucket/state is not a location that pyarrow or fsspec opens here (")
    assert os.linesep not in str(caught.value)
