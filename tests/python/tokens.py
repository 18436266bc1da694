"""Prints what a token of a media room says, as the official library of room servers reads it: TOKEN KEY SECRET."""

import json
import sys

import jwt
from livekit import api

token, key, secret = sys.argv[1:]
claims = api.TokenVerifier(key, secret).verify(token)
plain = jwt.decode(token, secret, algorithms=["HS256"], issuer=key)
print(
    json.dumps(
        {
            "identity": claims.identity,
            "name": claims.name,
            "metadata": claims.metadata,
            "attributes": claims.attributes,
            "room": claims.video.room,
            # The library takes grants that are missing for given.
            "grants": plain["video"],
            "agents": [[agent.agent_name, agent.metadata] for agent in claims.room_config.agents] if claims.room_config else [],
            "lasts_s": plain["exp"] - plain["nbf"],
        }
    )
)
