"""The package's metadata, and the contents of its source distribution."""

from __future__ import annotations

import tarfile
import tomllib
from email.message import Message
from email.parser import BytesParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from hatchling.builders.sdist import SdistBuilder

    folder = tmp_path_factory.mktemp("dist")
    (path,) = SdistBuilder(str(ROOT)).build(directory=str(folder))
    return Path(path)


def names_in(sdist: Path) -> set[str]:
    with tarfile.open(sdist) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def metadata_of(sdist: Path) -> Message:
    with tarfile.open(sdist) as archive:
        (name,) = [name for name in archive.getnames() if name.count("/") == 1 and name.endswith("PKG-INFO")]
        opened = archive.extractfile(name)
        assert opened is not None
        return BytesParser().parse(opened)


def test_the_source_distribution_holds_everything_that_the_checkout_does(sdist: Path) -> None:
    tracked = {"README.md", "CHANGELOG.md", "LICENSE", "Makefile", "pyproject.toml"}
    examples = {str(path.relative_to(ROOT)) for path in ROOT.glob("examples/**/*.*")}
    assert examples, "there are examples"
    assert tracked | {path for path in examples if "__pycache__" not in path} <= names_in(sdist)


def test_the_package_names_its_authors_and_what_it_is_for(sdist: Path) -> None:
    metadata = metadata_of(sdist)
    assert metadata["Author"] == "The kraft-wire authors"
    classifiers = metadata.get_all("Classifier") or []
    assert "Operating System :: POSIX :: Linux" in classifiers
    assert "Typing :: Typed" in classifiers
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"Programming Language :: Python :: {project['requires-python'].removeprefix('>=')}" in classifiers
