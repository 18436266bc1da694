"""An agent that is written to by mail: a server of `aiosmtpd` that takes mails, and `smtplib` that sends them.

`GET /seen` tells the port of the server, what came to it (`mails`) and how what was sent was answered (`sent`). `POST /script` sets how
it answers: `replies`, the texts in order, each to the next mail that comes; `port`, the server to send them to; `refuse`, an answer in
place of taking mails, for as many as `refusals` says (`refused` counts them), at the command `at`, RCPT or DATA; `headers` of its
replies; `files` attached to them, name and text. `POST /send` sends a mail as it is given: `port`, `from`, `to`, `raw` (text) or `text`
with `headers`; with `ca`, the file of an authority, after STARTTLS. `POST /many` sends `count` of them at once over `sessions` sessions.
`POST /inject` begins TLS with commands behind STARTTLS in one packet, and tells what is answered to DATA after it. Prints its address.
"""

import asyncio
import email
import email.policy
import smtplib
import socket
import ssl
import sys
import threading
from email.message import EmailMessage

from aiohttp import web
from aiosmtpd.smtp import SMTP
from ending import end_with_input

seen = {"port": 0, "mails": [], "sent": [], "refused": 0}
script = {"replies": [], "port": 0, "refuse": "", "refusals": 0, "at": "DATA", "headers": {}, "files": {}}
lock = threading.Lock()


def trust(ca):
    """Returns a context that trusts one authority."""
    return ssl.create_default_context(cafile=ca)


def deliver(port, sender, recipients, raw, ca=None):
    """Sends a mail and notes the answer: 250, or the code of the refusal."""
    try:
        with smtplib.SMTP("127.0.0.1", port, timeout=30) as session:
            if ca:
                session.starttls(context=trust(ca))
            session.sendmail(sender, recipients, raw)
        answer = 250
    except smtplib.SMTPRecipientsRefused as refused:
        answer = next(iter(refused.recipients.values()))[0]
    except smtplib.SMTPResponseException as refused:
        answer = refused.smtp_code
    except (smtplib.SMTPException, OSError):
        answer = 0
    with lock:
        seen["sent"].append(answer)
    return answer


def reply_to(message, text, headers):
    reply = EmailMessage(policy=email.policy.SMTP)
    reply["From"] = headers.pop("From", message["To"])
    reply["To"] = message["From"]
    reply["Subject"] = "Re: " + str(message["Subject"]).removeprefix("Re: ")
    reply["Message-ID"] = email.utils.make_msgid(domain="agent.example")
    reply["In-Reply-To"] = message["Message-ID"]
    reply["References"] = " ".join(filter(None, [message["References"], message["Message-ID"]]))
    for name, value in headers.items():
        reply[name] = value
    quoted = "".join(f"> {line}\n" for line in message.get_content().splitlines())
    reply.set_content(f"{text}\n\nOn Monday {message['From']} wrote:\n{quoted}\n-- \nThe Desk\n")
    for name, content in script["files"].items():
        reply.add_attachment(content.encode(), maintype="application", subtype="pdf", filename=name)
    return reply


def refuses(command):
    """True if this command is to be refused."""
    if script["refusals"] == 0 or script["at"] != command:
        return False
    script["refusals"] -= 1
    seen["refused"] += 1
    return True


class Agent:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if refuses("RCPT"):
            return script["refuse"]
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 known"

    async def handle_DATA(self, server, session, envelope):
        if refuses("DATA"):
            return script["refuse"]
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        headers = {name: str(value) for name, value in message.items()}
        mail = {"from": envelope.mail_from, "to": envelope.rcpt_tos, "headers": headers, "text": message.get_content().strip()}
        seen["mails"].append(mail)
        if script["replies"]:
            reply = reply_to(message, script["replies"].pop(0), dict(script["headers"]))
            to = [email.utils.parseaddr(str(message["From"]))[1]]
            send = lambda: deliver(script["port"], "desk@agent.example", to, reply.as_bytes())
            asyncio.get_running_loop().run_in_executor(None, send)
        return "250 2.0.0 taken"


async def set_script(request):
    script.update(await request.json())
    return web.json_response({})


def written(body):
    if "raw" in body:
        return body["raw"].encode()
    message = EmailMessage(policy=email.policy.SMTP)
    message["From"] = body.get("header_from", body["from"])
    message["To"] = ", ".join(body["to"])
    for name, value in body.get("headers", {}).items():
        message[name] = value
    message.set_content(body["text"])
    return message.as_bytes()


async def send(request):
    body = await request.json()
    await asyncio.to_thread(deliver, body["port"], body["from"], body["to"], written(body), body.get("ca"))
    return web.json_response({})


def injected(port, ca, commands):
    """Returns the first line that is answered to DATA, once commands came behind STARTTLS in its packet."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as plain:
        lines = plain.makefile("rb")
        lines.readline()
        plain.sendall(b"EHLO agent.example\r\n")
        while lines.readline()[3:4] == b"-":
            pass
        plain.sendall(b"STARTTLS\r\n" + commands.encode())
        lines.readline()
        with trust(ca).wrap_socket(plain, server_hostname="127.0.0.1") as secured:
            secured.sendall(b"DATA\r\n")
            return secured.makefile("rb").readline().decode()


async def inject(request):
    body = await request.json()
    answer = await asyncio.to_thread(injected, body["port"], body["ca"], body["commands"])
    with lock:
        seen["sent"].append(int(answer[:3]))
    return web.json_response({})


def send_share(body, numbers):
    with smtplib.SMTP("127.0.0.1", body["port"], timeout=60) as session:
        for number in numbers:
            body["headers"] = {"Message-ID": f"<many-{number}@agent.example>"}
            session.sendmail(body["from"], body["to"], written(body))
            with lock:
                seen["sent"].append(250)


async def send_many(request):
    body = await request.json()
    shares = [range(first, body["count"], body["sessions"]) for first in range(body["sessions"])]
    await asyncio.gather(*(asyncio.to_thread(send_share, dict(body), share) for share in shares))
    return web.json_response({})


async def main():
    end_with_input()
    server = await asyncio.get_running_loop().create_server(lambda: SMTP(Agent(), enable_SMTPUTF8=True), "127.0.0.1", 0)
    seen["port"] = server.sockets[0].getsockname()[1]
    app = web.Application(client_max_size=64 << 20)
    app.add_routes([
        web.get("/seen", lambda _: asyncio.sleep(0, web.json_response(seen))),
        web.post("/script", set_script),
        web.post("/send", send),
        web.post("/many", send_many),
        web.post("/inject", inject),
    ])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    print("ready", file=sys.stderr)
    await asyncio.Event().wait()


asyncio.run(main())
