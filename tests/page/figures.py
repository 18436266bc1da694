"""Figures of the page: first paint and heap of a call of an hour, and the time until a run of 200 results is shown.

    figures.py RINGER

makes one real call to the sample agent, lets its record, timeline and recording last for an hour, repeats the result 200 times
in its run (all in a folder that is removed), and looks at both in Chromium. Ends with 1 where a bound does not hold.
"""

import json
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

HOUR_MS = 3_600_000
KEY = "a key of the figures of the page"
HEADER = 104
BOUNDS = {"paint_ms": 500, "heap_mb": 100, "loaded_kb": 200, "results_ms": 300}


def ask(method, url, body=None, headers=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, method=method, data=data, headers={"content-type": "application/json", **(headers or {})})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


class Engine:
    def __init__(self, program, folder):
        command = [program, "up", "--listen", "127.0.0.1:0", "--sip", "127.0.0.1:0", "--data", str(folder / "data")]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=folder, env={"RINGER_BOOTSTRAP_KEY": KEY, "PATH": "/usr/bin:/bin"})
        self.base = re.search(r"http://[\d.:]+", self.process.stdout.readline()).group(0)

    def ask(self, method, path, body=None):
        return ask(method, self.base + path, body, {"x-api-key": KEY})

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Browser:
    def __init__(self, folder):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
        port = next(found.group(1) for line in self.driver.stdout if (found := re.search(r"successfully on port (\d+)", line)))
        args = ["--headless=new", "--no-sandbox", "--disable-gpu", "--enable-precise-memory-info", f"--user-data-dir={folder / 'chromium'}"]
        sessions = f"http://127.0.0.1:{port}/session"
        made = ask("POST", sessions, {"capabilities": {"alwaysMatch": {"goog:chromeOptions": {"args": args}}}})
        self.session = f"{sessions}/{made['value']['sessionId']}"

    def tell(self, command, body):
        return ask("POST", f"{self.session}/{command}", body)["value"]

    def run(self, script):
        return self.tell("execute/sync", {"script": script, "args": []})

    def stop(self):
        self.driver.terminate()
        self.driver.wait()


def one_call(engine):
    uri = engine.ask("POST", "/v1/sample-agent", {})["sip_uri"]
    agent = engine.ask("POST", "/v1/add-agent", {"name": "Desk", "type": "INBOUND", "connection_type": "SIP", "sip_uri": uri})["agent_id"]
    simulation = engine.ask("POST", "/v1/create-simulation", {"agent_id": str(agent), "name": "Figures"})["simulation_id"]
    human = {"name": "Sam", "intent": "Hello, I would like to book an appointment. Tuesday is good.", "language": "en"}
    engine.ask("POST", "/v1/create-digital-human", {"digital_human": human, "simulation_ids": [simulation]})
    result = engine.ask("POST", "/v1/queue-simulation-run", {"simulation_id": str(simulation)})["simulation_result_ids"][0]
    for _ in range(600):
        status = engine.ask("GET", f"/v1/retrieve-simulation-result/{result}")["simulation_result"]["status"]
        if status == "COMPLETED":
            return
        time.sleep(0.5)
    sys.exit(f"the call does not end: {status}")


def later(part, by_ms):
    """A copy of an event or an entry, so much later."""
    part = json.loads(json.dumps(part))
    for place in [part, part.get("data") or {}, *(part.get("words") or []), *((part.get("data") or {}).get("words") or [])]:
        for name in place:
            if name in ("sample", "from_sample", "end_sample"):
                place[name] += by_ms * 16
            elif name in ("offset_ms", "start_offset_ms", "end_offset_ms"):
                place[name] += by_ms
    return part


def make_an_hour(data):
    rows = sqlite3.connect(data / "ringer.db")

    def read(table, column):
        return json.loads(rows.execute(f"SELECT doc FROM {table} WHERE {column} = 1").fetchone()[0])

    result, events, script = read("results", "id"), read("timelines", "result_id"), read("transcripts", "result_id")
    length = result["body"]["duration_ms"]
    result["body"].update(duration_ms=HOUR_MS, duration=HOUR_MS // 1000)
    ends = [event for event in events if event["event"] == "call.ended"]
    between = [event for event in events if event["event"] not in ("call.dialing", "call.ringing", "call.connected", "call.ended")]
    before = [event for event in events if event["event"] in ("call.dialing", "call.ringing", "call.connected")]
    times = range(HOUR_MS // length)
    hour = before + [later(event, n * length) for n in times for event in between] + [later(event, HOUR_MS - length) for event in ends]
    for seq, event in enumerate(hour):
        event["seq"] = seq
    script["entries"] = [later(entry, n * length) for n in times for entry in script["entries"]]
    for table, column, doc in (("results", "id", result), ("timelines", "result_id", hour), ("transcripts", "result_id", script)):
        rows.execute(f"UPDATE {table} SET doc = ? WHERE {column} = 1", (json.dumps(doc),))
    columns = [row[1] for row in rows.execute("PRAGMA table_info(results)") if row[1] != "id"]
    for n in range(199):
        rows.execute(f"INSERT INTO results (id, {', '.join(columns)}) SELECT {1000 + n}, {', '.join(columns)} FROM results WHERE id = 1")
    rows.commit()
    rows.close()
    wav = data / "results" / "1" / "recording.wav"
    head, sound = wav.read_bytes()[:HEADER], wav.read_bytes()[HEADER:]
    size = HOUR_MS * 64
    at = head.index(b"data")
    head = head[:4] + struct.pack("<I", size + HEADER - 8) + head[8 : at + 4] + struct.pack("<I", size)
    wav.write_bytes(head + (sound * (size // len(sound) + 1))[:size])


def look(engine, browser):
    browser.tell("timeouts", {"script": 120_000})
    browser.tell("url", {"url": engine.base})
    browser.run(f"sessionStorage.setItem('ringer-key', {json.dumps(KEY)})")
    # The outline is made at the first asking.
    engine.ask("GET", "/v1/simulation-result/1/peaks?zoom=0")
    browser.tell("url", {"url": engine.base + "/results/1"})
    shown = "while (!document.querySelector('.figure')) await new Promise((done) => setTimeout(done, 10)); await new Promise((done) => setTimeout(done, 1500));"
    browser.run(shown)
    figures = browser.run(
        "const paint = performance.getEntriesByName('first-contentful-paint')[0];"
        "const loaded = performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'));"
        "return { paint_ms: Math.round(paint.startTime), heap_mb: Math.round(performance.memory.usedJSHeapSize / 1e6),"
        " loaded_kb: Math.round(loaded.reduce((sum, one) => sum + one.transferSize, 0) / 1000) }"
    )
    browser.tell("url", {"url": engine.base + "/"})
    browser.run("while (!document.querySelector('tbody a')) await new Promise((done) => setTimeout(done, 10));")
    figures["results_ms"] = browser.run(
        "const began = performance.now(); document.querySelector('tbody a').click();"
        "while (document.querySelectorAll('tbody a').length < 200) await new Promise((done) => setTimeout(done, 5));"
        "return Math.round(performance.now() - began);"
    )
    return figures


def main():
    program = str(Path(sys.argv[1]).resolve())
    folder = Path(tempfile.mkdtemp(prefix="ringer-page-"))
    try:
        engine = Engine(program, folder)
        one_call(engine)
        engine.stop()
        make_an_hour(folder / "data")
        engine, browser = Engine(program, folder), Browser(folder)
        figures = look(engine, browser)
        browser.stop()
        engine.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for name, bound in BOUNDS.items():
        print(f"{name:12} {figures[name]:6}  at most {bound}{'' if figures[name] <= bound else '  EXCEEDED'}")
    sys.exit(any(figures[name] > bound for name, bound in BOUNDS.items()))


main()
