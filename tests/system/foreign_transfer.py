"""One TCP connection that is not the browser's: from the client's namespace to an origin's address."""

import socket

with socket.create_connection(("10.65.0.1", 443), timeout=5) as connection:
    connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
    connection.recv(100)
