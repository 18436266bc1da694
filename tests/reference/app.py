"""The part of the API that is measured, as one would write it with FastAPI and sqlite3: what Ringer's speed is compared with.

    REFERENCE_KEY=... uvicorn --app-dir tests/reference app:app --no-access-log

The handlers are coroutines on one connection: faster here than the thread pool that plain functions would run in.
"""

import hashlib
import json
import os
import sqlite3
import time
from enum import Enum
from typing import Annotated, Any
from uuid import UUID, uuid4

from fastapi import Depends, FastAPI, Header, HTTPException
from pydantic import BaseModel, Field


class AgentType(str, Enum):
    INBOUND = "INBOUND"
    OUTBOUND = "OUTBOUND"


class AgentMode(str, Enum):
    VOICE = "VOICE"
    TEXT = "TEXT"
    EMAIL = "EMAIL"


class ConnectionType(str, Enum):
    SMS = "SMS"
    HTTP_WEBHOOK = "HTTP_WEBHOOK"
    PHONE = "PHONE"
    SIP = "SIP"
    WEBSOCKET = "WEBSOCKET"
    EMAIL = "EMAIL"
    P1 = "P1"
    P2 = "P2"
    P3 = "P3"
    P4 = "P4"
    P5 = "P5"
    P6 = "P6"
    P7 = "P7"
    P8 = "P8"
    P9 = "P9"
    P10 = "P10"
    P11 = "P11"
    P12 = "P12"


class Provider(str, Enum):
    CUSTOM = "CUSTOM"
    P3 = "P3"
    P4 = "P4"
    P5 = "P5"
    P6 = "P6"
    P7 = "P7"
    P8 = "P8"
    P9 = "P9"
    P10 = "P10"
    P11 = "P11"
    P12 = "P12"


Label = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._ -]+$")]


class Agent(BaseModel):
    name: str = Field(min_length=1, max_length=255)
    goals: list[str] = []
    svc_as_code_id: UUID | None = None
    external_agent_id: str | None = None
    type: AgentType = AgentType.INBOUND
    mode: AgentMode = AgentMode.VOICE
    connection_type: ConnectionType | None = None
    provider: Provider | None = None
    phone_number: str | None = None
    email_address: str | None = None
    email_reply_addresses: list[str] = []
    follow_up_sms_sender_numbers: list[str] = []
    websocket_url: str | None = None
    websocket_username: str | None = None
    websocket_password: str | None = None
    sip_uri: str | None = None
    sip_username: str | None = None
    sip_password: str | None = None
    custom_sip_headers: dict[str, str] | None = None
    dynamic_sip_webhook_url: str | None = None
    outbound_trigger_webhook_url: str | None = None
    outbound_trigger_payload_template: dict[str, Any] | None = None
    enable_outbound_call_auto_start: bool | None = None
    simulations_disabled: bool = False
    redact_pii: bool = False
    http_webhook: str | None = None
    http_webhook_sync_reply: bool = False
    voice_provider: str | None = None
    provider_id: str | None = None
    keyterms: list[str] = []
    workflow: dict[str, Any] | None = None
    red_team_profile: dict[str, Any] | None = None
    simulation_notifications: dict[str, Any] = {}
    P1_agent_name: str | None = None
    P1_customer_tool_topic: str | None = None
    P1_token_webhook_url: str | None = None
    P1_token_webhook_auth: str | None = None
    P1_metadata: dict[str, Any] | None = None
    P2_agent_name: str | None = None
    P2_agent_configuration: dict[str, Any] | None = None
    P2_room_properties: dict[str, Any] | None = None
    P3_agent_id: str | None = None
    P4_agent_id: str | None = None
    P5_assistant_id: str | None = None
    P6_app_id: str | None = None
    P6_deployment_id: str | None = None
    P7_project_id: str | None = None
    P7_location: str | None = None
    P7_agent_id: str | None = None
    P8_base_url: str | None = None
    P8_domain_code: str | None = None
    P8_flow_name: str | None = None
    P8_agent_name: str | None = None
    P9_pathway_id: str | None = None
    P9_agent_id: str | None = None
    P9_call_settings: dict[str, Any] | None = None
    P10_agent_token: str | None = None
    P10_release: str | None = None
    P10_agent_parameters: dict[str, Any] | None = None
    P11_host: str | None = None
    P11_bot_id: str | None = None
    P11_client_id: str | None = None
    P11_client_secret: str | None = None
    P12_base_url: str | None = None
    P12_api_key: str | None = None
    P12_model: str | None = None


class NewAgent(Agent):
    system_prompt: str = ""
    labels: list[Label] = []
    folder: str | None = None


class AgentRecord(Agent):
    id: int
    agent_description: str
    folder_id: UUID | None
    created_at: int
    updated_at: int
    updated_by: UUID | None


class AgentAdded(BaseModel):
    agent_id: int
    status: str
    http_webhook_key: str | None


db = sqlite3.connect(os.environ.get("REFERENCE_DATABASE", "reference.db"), isolation_level=None)
db.executescript("""
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    PRAGMA foreign_keys = ON;
    CREATE TABLE IF NOT EXISTS api_keys (id TEXT PRIMARY KEY, org_id TEXT NOT NULL, hash TEXT NOT NULL UNIQUE, revoked INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS agents (id INTEGER PRIMARY KEY AUTOINCREMENT, org_id TEXT NOT NULL, doc TEXT NOT NULL,
        created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL, updated_by TEXT);
    CREATE TABLE IF NOT EXISTS agent_versions (id TEXT PRIMARY KEY, agent_id INTEGER NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
        version INTEGER NOT NULL, production INTEGER NOT NULL, doc TEXT NOT NULL, UNIQUE (agent_id, version));
""")


def hashed(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


db.execute(
    "INSERT INTO api_keys (id, org_id, hash, revoked) VALUES (?, ?, ?, 0) ON CONFLICT (hash) DO NOTHING",
    (str(uuid4()), str(uuid4()), hashed(os.environ["REFERENCE_KEY"])),
)


class Caller:
    __slots__ = ("key_id", "organization")

    def __init__(self, key_id: str, organization: str):
        self.key_id = key_id
        self.organization = organization


async def caller(x_api_key: Annotated[str, Header()]) -> Caller:
    row = db.execute("SELECT id, org_id, revoked FROM api_keys WHERE hash = ?", (hashed(x_api_key),)).fetchone()
    if row is None or row[2]:
        raise HTTPException(401, "Invalid API key")
    return Caller(row[0], row[1])


app = FastAPI()


@app.get("/v1/agents/{agent_id}", response_model=AgentRecord)
async def read(agent_id: int, caller: Annotated[Caller, Depends(caller)]):
    sql = "SELECT doc, created_ms, updated_ms, updated_by FROM agents WHERE id = ? AND org_id = ?"
    row = db.execute(sql, (agent_id, caller.organization)).fetchone()
    if row is None:
        raise HTTPException(404, "Agent not found")
    sql = "SELECT doc FROM agent_versions WHERE agent_id = ? AND production = 1"
    version = json.loads(db.execute(sql, (agent_id,)).fetchone()[0])
    return AgentRecord(
        **json.loads(row[0]),
        id=agent_id,
        agent_description=version["prompt_text"],
        folder_id=None,
        created_at=row[1],
        updated_at=row[2],
        updated_by=row[3],
    )


@app.post("/v1/add-agent", response_model=AgentAdded)
async def add(agent: NewAgent, caller: Annotated[Caller, Depends(caller)]):
    now = int(time.time() * 1000)
    doc = agent.model_dump_json(exclude={"system_prompt", "labels", "folder"})
    version = json.dumps({"prompt_text": agent.system_prompt, "labels": ["production", "latest", *agent.labels]})
    db.execute("BEGIN IMMEDIATE")
    try:
        sql = "INSERT INTO agents (org_id, doc, created_ms, updated_ms, updated_by) VALUES (?, ?, ?, ?, ?)"
        agent_id = db.execute(sql, (caller.organization, doc, now, now, caller.key_id)).lastrowid
        sql = "INSERT INTO agent_versions (id, agent_id, version, production, doc) VALUES (?, ?, 1, 1, ?)"
        db.execute(sql, (str(uuid4()), agent_id, version))
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise
    return AgentAdded(agent_id=agent_id, status="200", http_webhook_key=None)
