"""Results are not computed for a file that cannot be written."""

from __future__ import annotations

import pytest

from anabranch.cli.output import check_writable
from anabranch.errors import InputError


def test_a_new_file_in_a_new_folder_is_fine_and_not_left_behind(tmp_path):
    check_writable(tmp_path / "new" / "result.json")
    assert (tmp_path / "new").is_dir()
    assert not (tmp_path / "new" / "result.json").exists()


def test_an_existing_file_keeps_its_content(tmp_path):
    path = tmp_path / "result.json"
    path.write_text("before")
    check_writable(path)
    assert path.read_text() == "before"


def test_a_file_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot write to .*; choose another file"):
        check_writable(tmp_path / "file" / "result.json")
