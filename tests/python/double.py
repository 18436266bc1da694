"""Calls an agent by the protocol of a carrier's media streams, as streamdouble does it. Usage: double.py URL

The caller says recorded speech. Prints the report as JSON.
"""

import asyncio
import json
import pathlib
import sys

from streamdouble.api import call
from streamdouble.session import SessionConfig

ULAW = (pathlib.Path(__file__).parents[2] / "fixtures/audio/speech.ul").read_bytes()
FRAMES = [ULAW[at : at + 160] for at in range(0, 16000, 160)]


async def main():
    config = SessionConfig(custom_parameters={"simulation_result_id": "42"})
    report = await call(sys.argv[1], frames=FRAMES, config=config)
    told = report.to_dict()
    told["violations"], told["spoke"] = report.violations, report.spoke
    told["audio_bytes"] = len(report.audio_received)
    print(json.dumps(told), flush=True)


asyncio.run(main())
