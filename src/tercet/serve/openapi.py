"""``python -m tercet.serve.openapi``: the OpenAPI document on standard output."""

import json
import sys

from tercet.serve.app import create_app
from tercet.settings.serve import ServerConfig

if __name__ == "__main__":
    document = create_app(ServerConfig()).openapi()
    sys.stdout.write(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
