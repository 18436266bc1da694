"""Build hook of the wheel: adds the operations and models that are made from the OpenAPI document."""

import os
import sys
import tempfile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Places of the document: in a source distribution, and in the repository.
DOCUMENTS = ["openapi.json", os.path.join("..", "..", "fixtures", "api", "openapi.json")]


class Generated(BuildHookInterface):
    """Generates the code into a temporary folder, from which it goes into the wheel."""

    def initialize(self, version, build_data):
        """Generates the code; `build_data` takes its place in the wheel."""
        sys.path.insert(0, self.root)
        import generate

        found = [path for path in (os.path.join(self.root, name) for name in DOCUMENTS) if os.path.exists(path)]
        if not found:
            raise FileNotFoundError(f"no OpenAPI document: neither of {', '.join(DOCUMENTS)} is below {self.root}")
        self.folder = tempfile.TemporaryDirectory(prefix="ringer-client-")
        for name in generate.generate(found[0], self.folder.name):
            build_data["force_include"][os.path.join(self.folder.name, name)] = f"ringer_client/{name}"

    def finalize(self, version, build_data, artifact_path):
        """Removes the temporary folder."""
        self.folder.cleanup()
