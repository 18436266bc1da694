"""The client in TypeScript: its types, and its tests and the example, which Vitest runs against engines that they start."""

import json
import os
import re
import unittest

import place

WORK = os.path.join(place.TOOLS, "typescript")


class TypeScript(unittest.TestCase):
    """The package, copied beside its tools: modules are found in the folders above."""

    def test_types_compile_and_calls_are_made(self):
        place.run(os.path.join(place.HERE, "copy.sh"), place.TOOLS)
        env = place.environment(RINGER_DOCUMENT=place.DOCUMENT, RINGER_TEST_SUITE=os.path.join(place.HERE, "chat.yaml"), CI="true")
        place.run("npm", "run", "--silent", "build", cwd=WORK, env=env)
        place.run("npm", "run", "--silent", "check", cwd=WORK, env=env)
        self.check_operations()
        told = os.path.join(WORK, "told.json")
        place.run("npx", "vitest", "run", "--reporter=json", f"--outputFile={told}", cwd=WORK, env=env)
        with open(told, encoding="utf-8") as file:
            results = json.load(file)
        ran = {os.path.basename(one["name"]): len(one["assertionResults"]) for one in results["testResults"]}
        self.assertEqual(ran, {"ringer.test.ts": 6, "desk.test.ts": 1})
        self.assertEqual((results["numPassedTests"], results["numTotalTests"]), (7, 7))

    def check_operations(self):
        """Checks that every operation of the document has its types."""
        with open(place.DOCUMENT, encoding="utf-8") as file:
            paths = json.load(file)["paths"]
        with open(os.path.join(WORK, "src", "schema.ts"), encoding="utf-8") as file:
            types = file.read().split("export interface operations {")[1]
        typed = re.findall(r"^    (\w+): \{$", types, re.MULTILINE)
        self.assertEqual(sorted(typed), sorted(one["operationId"] for path in paths.values() for one in path.values()))


if __name__ == "__main__":
    unittest.main()
