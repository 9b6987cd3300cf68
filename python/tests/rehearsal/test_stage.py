"""Where the servers of a rehearsal listen."""

from __future__ import annotations

from wirepaint.rehearsal.stage import _places

ORIGINS = [("http", "a.test", 80), ("https", "a.test", 443), ("http", "b.test", 8123)]


def test_origins_listen_on_their_own_ports_unless_somebody_else_does() -> None:
    usual, hosts = _places(ORIGINS, usual_ports=True)
    assert usual[2].listen_port == 8123 and all(origin.listen_port >= 1024 for origin in usual)
    assert hosts["b.test:8123"].endswith(":8123")
    others = [_places(ORIGINS, usual_ports=False)[0] for _ in range(20)]
    assert all(origin.listen_port >= 20_000 for origins in others for origin in origins)
    assert all(len({origin.listen_port for origin in origins}) == 3 for origins in others)
    assert len({origins[2].listen_port for origins in others}) > 1
