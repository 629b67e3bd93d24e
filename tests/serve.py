#!/usr/bin/env python3
"""A web server that misbehaves, for tests/data/fetch.sh: serve.py FOLDER LOG serves FOLDER on a free port
of 127.0.0.1, prints the port, and writes a line "MODE NAME FROM" for each request to LOG (FROM: first
byte asked for, or - without a range).

The address says how it behaves: /MODE/NAME, with a number for some: /cut=1000/iris_test.csv
  good        ranges are served
  norange     the whole file, whatever is asked for
  cut=N       the connection is cut after N bytes of every answer
  cutall=N    the same, ranges not understood
  nolength=N  the same, without a Content-Length: a cut looks like an end
  once=N      the first answer is cut, later ones are not
  dumb        a head, and then nothing for ever
  stall=N     N bytes, and then nothing for ever
  drip=N      N bytes at once, the rest byte by byte, 50 ms apart
  wrong       right length, one byte changed
  long, short a byte more, a byte less
  shifted     answers a range with bytes from another place, and says so
  silent      the same, but does not say so
  redirect    to good
  loop        to itself
  elsewhere   to a file of this machine
  none        404
  close       cuts the connection before any head
"""
import http.server
import os
import re
import sys
import threading
import time

folder, log_path = sys.argv[1:]
lock = threading.Lock()
answered = set()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def cut(self):
        self.close_connection = True

    def do_GET(self):
        _, mode, name = self.path.split("/", 2)
        mode, _, number = mode.partition("=")
        number = int(number or 0)
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        first = int(asked.group(1)) if asked else 0
        with lock:
            with open(log_path, "a") as log:
                log.write(f"{mode} {name} {first if asked else '-'}\n")
            is_first = name not in answered
            answered.add(name)
        path = os.path.join(folder, name)
        if mode == "close":
            return self.cut()
        if mode in ("redirect", "loop", "elsewhere"):
            to = {"redirect": f"/good/{name}", "loop": self.path, "elsewhere": f"file://{path}"}[mode]
            self.send_response(302)
            self.send_header("Location", to)
            self.send_header("Content-Length", "0")
            return self.end_headers()
        if mode == "none" or not os.path.isfile(path):
            return self.send_error(404)
        data = open(path, "rb").read()
        if mode == "wrong":
            data = data[:-1] + bytes([data[-1] ^ 1])
        if mode == "long":
            data += b"x"
        if mode == "short":
            data = data[:-1]
        ranges = asked and mode not in ("norange", "cutall")
        if ranges and first >= len(data):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(data)}")
            self.send_header("Content-Length", "4")
            self.end_headers()
            return self.wfile.write(b"gone")
        begin = first if ranges else 0
        said = begin
        if ranges and mode in ("shifted", "silent"):
            begin -= 1
            said = begin if mode == "shifted" else first
        body = data[begin:begin + len(data) - said] if mode == "silent" else data[begin:]
        self.send_response(206 if ranges else 200)
        if ranges:
            self.send_header("Content-Range", f"bytes {said}-{len(data) - 1}/{len(data)}")
        if mode == "nolength":
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if mode in ("cut", "cutall", "nolength") or (mode == "once" and is_first):
            self.wfile.write(body[:number])
            return self.cut()
        if mode in ("dumb", "stall"):
            self.wfile.write(body[:number])
            self.wfile.flush()
            time.sleep(600)
        if mode == "drip":
            self.wfile.write(body[:number])
            body = body[number:]
            for i in range(len(body)):
                self.wfile.write(body[i:i + 1])
                self.wfile.flush()
                time.sleep(0.05)
            return None
        return self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *words):
        pass  # a client that goes away is what is tested


server = Server(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
