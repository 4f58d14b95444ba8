"""``python -m tercet.serve.openapi``: the OpenAPI document on standard output."""

import sys

from tercet.files.structured import json_text
from tercet.serve.app import create_app
from tercet.settings.serve import ServerConfig

if __name__ == "__main__":
    document = create_app(ServerConfig()).openapi()
    sys.stdout.write(json_text(document, indent=1) + "\n")
