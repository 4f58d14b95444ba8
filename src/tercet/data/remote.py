"""Files at URLs such as ``s3://bucket/key``, through the file systems of pyarrow."""

from io import BufferedReader
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from tercet.errors import DataError
from tercet.extras import require

SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs", "file")
"""What pyarrow opens. The credentials are those of its own configuration, such as ``AWS_ACCESS_KEY_ID``."""


def is_url(name: str) -> bool:
    """Whether a name is the URL of a file or folder that pyarrow opens."""
    return "://" in name and urlsplit(name).scheme in SCHEMES


def open_url(name: str) -> BinaryIO:
    """The file at a URL, which can be read from any position."""
    files, path = _file_system(name)
    try:
        return BufferedReader(files.open_input_file(path))  # which reads lines too
    except FileNotFoundError:
        raise DataError(f"there is no file {shown(name)}: check the name") from None
    except OSError as error:
        raise DataError(
            f"cannot read {shown(name)}: {' '.join(str(error).split())}: check the name and access"
        ) from None


def list_url(name: str) -> list[str]:
    """The URL itself if it is a file; else the URLs of all files below it, sorted."""
    files, path = _file_system(name)
    fs: Any = require("pyarrow.fs", extra="parquet", purpose="reading URLs")
    try:
        if files.get_file_info(path).type == fs.FileType.File:
            return [name]
        found = files.get_file_info(fs.FileSelector(path, recursive=True))
    except OSError as error:
        raise DataError(
            f"cannot list {shown(name)}: {' '.join(str(error).split())}: check the name and access"
        ) from None
    below = sorted(each.path for each in found if each.type == fs.FileType.File)
    return [f"{name.rstrip('/')}/{file.removeprefix(path.rstrip('/')).lstrip('/')}" for file in below]


def shown(name: str) -> str:
    """A URL without user, password and parameters, which may hold keys."""
    parts = urlsplit(name)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _file_system(name: str) -> tuple[Any, str]:
    if urlsplit(name).password:
        raise DataError(
            f"{shown(name)} must not contain a password: set it in the environment (docs/scale.md)"
        )
    arrow = require("pyarrow", extra="parquet", purpose="reading URLs")
    fs = require("pyarrow.fs", extra="parquet", purpose="reading URLs")
    try:
        files, path = fs.FileSystem.from_uri(name)
    except (OSError, ValueError, arrow.ArrowException) as error:
        raise DataError(f"cannot open {shown(name)}: {' '.join(str(error).split())}") from None
    return files, str(path)
