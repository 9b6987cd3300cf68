"""HAR 1.2 as a JSON Schema, from the format's description (fields, which are optional, value -1)."""

TEXT = {"type": "string"}
FLAG = {"type": "boolean"}
COUNT = {"type": "integer", "minimum": -1}
KNOWN = {"type": "number", "minimum": 0}
OR_UNKNOWN = {"anyOf": [KNOWN, {"const": -1}]}
INSTANT = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$"}


def form(required, optional=None):
    """An object with these fields and no others but those that begin with an underscore."""
    return {
        "type": "object",
        "required": list(required),
        "properties": required | {"comment": TEXT} | (optional or {}),
        "patternProperties": {"^_": {}},
        "additionalProperties": False,
    }


def many(item):
    return {"type": "array", "items": item}


PAIR = form({"name": TEXT, "value": TEXT})
COOKIE = form(
    {"name": TEXT, "value": TEXT},
    {"path": TEXT, "domain": TEXT, "expires": TEXT, "httpOnly": FLAG, "secure": FLAG},
)  # fmt: skip
REQUEST = form(
    {
        "method": TEXT, "url": TEXT | {"pattern": "^[a-z]+:"}, "httpVersion": TEXT, "cookies": many(COOKIE),
        "headers": many(PAIR), "queryString": many(PAIR), "headersSize": COUNT, "bodySize": COUNT,
    },
    {"postData": {"type": "object"}},
)  # fmt: skip
CONTENT = form({"size": COUNT, "mimeType": TEXT}, {"compression": COUNT, "text": TEXT, "encoding": TEXT})
RESPONSE = form(
    {
        "status": COUNT, "statusText": TEXT, "httpVersion": TEXT, "cookies": many(COOKIE),
        "headers": many(PAIR), "content": CONTENT, "redirectURL": TEXT,
        "headersSize": COUNT, "bodySize": COUNT,
    }
)  # fmt: skip
TIMINGS = form(
    {"send": KNOWN, "wait": KNOWN, "receive": KNOWN},
    {"blocked": OR_UNKNOWN, "dns": OR_UNKNOWN, "connect": OR_UNKNOWN, "ssl": OR_UNKNOWN},
)
ENTRY = form(
    {
        "startedDateTime": INSTANT, "time": KNOWN, "request": REQUEST, "response": RESPONSE,
        "cache": {"type": "object"}, "timings": TIMINGS,
    },
    {"pageref": TEXT, "serverIPAddress": TEXT, "connection": TEXT},
)  # fmt: skip
PAGE = form(
    {
        "startedDateTime": INSTANT, "id": TEXT, "title": TEXT,
        "pageTimings": form({}, {"onContentLoad": OR_UNKNOWN, "onLoad": OR_UNKNOWN}),
    }
)  # fmt: skip
PROGRAM = form({"name": TEXT, "version": TEXT})
SCHEMA = form(
    {
        "log": form(
            {"version": {"const": "1.2"}, "creator": PROGRAM, "entries": many(ENTRY)},
            {"browser": PROGRAM, "pages": many(PAGE)},
        )
    }
)
