"""The adapter of aiocoap for the interoperability matrix; ../README.md describes it.

matrix.py server PORT HOST [coap|coap+tcp|coaps+tcp]
matrix.py ask URI
"""

import asyncio
import json
import os
import ssl
import sys
import tempfile
from urllib.parse import unquote, urlsplit

import aiocoap
from aiocoap import CON, NON, Code, Context, Message, resource
from aiocoap.numbers.constants import TransportTuning
from aiocoap.numbers.optionnumbers import OptionNumber
from aiocoap.optiontypes import OpaqueOption

# A loopback interface answers soon, and a relay that loses a tenth of all needs more patience.
TransportTuning.ACK_TIMEOUT = 0.5
TransportTuning.MAX_RETRANSMIT = 8
UNSUPPORTED = 127
CERTIFICATES = os.environ.get("INTEROP_CERTIFICATES")
if os.environ.get("INTEROP_OSCORE"):
    import aiocoap.oscore_sitewrapper


def digits(length):
    return bytes(48 + n % 10 for n in range(length))


class Bytes(resource.Resource):
    def __init__(self, payload, after=0):
        super().__init__()
        self.payload, self.after = payload, after

    async def render_get(self, request):
        await asyncio.sleep(self.after)
        return Message(payload=self.payload, content_format=0)


class Query(resource.Resource):
    async def render_get(self, request):
        return Message(payload="&".join(request.opt.uri_query).encode())


class Echo(resource.Resource):
    async def render_put(self, request):
        return Message(code=Code.CHANGED, payload=request.payload)

    render_post = render_patch = render_ipatch = render_put

    async def render_fetch(self, request):
        return Message(code=Code.CONTENT, payload=request.payload)

    async def render_delete(self, request):
        return Message(code=Code.DELETED)


class Length(resource.Resource):
    async def render_put(self, request):
        return Message(code=Code.CHANGED, payload=str(len(request.payload)).encode())


class Tagged(resource.Resource):
    tag = b"\x2a"

    async def render_get(self, request):
        if request.opt.accept not in (None, 0):
            return Message(code=Code.NOT_ACCEPTABLE)
        if self.tag in request.opt.etags:
            return Message(code=Code.VALID, etag=self.tag)
        return Message(payload=b"tagged", etag=self.tag)

    async def render_put(self, request):
        met = not request.opt.if_none_match and (not request.opt.if_match or self.tag in request.opt.if_match)
        return Message(code=Code.CHANGED if met else Code.PRECONDITION_FAILED)


class Fresh(resource.Resource):
    async def render_get(self, request):
        if request.opt.echo:
            return Message(payload=b"fresh")
        return Message(code=Code.UNAUTHORIZED, echo=b"echo-me!")


class Count(resource.Resource):
    count = 0

    async def render_post(self, request):
        self.count += 1
        return Message(code=Code.CHANGED, payload=str(self.count).encode())


class Time(resource.ObservableResource):
    def __init__(self, every, state):
        super().__init__()
        self.number, self.every, self.state = 0, every, state
        self.task = asyncio.get_running_loop().create_task(self.tick())

    async def tick(self):
        while True:
            await asyncio.sleep(self.every)
            self.number += 1
            self.updated_state()

    async def render_get(self, request):
        return Message(payload=self.state(self.number))


def tls_context(purpose):
    context = ssl.create_default_context(purpose, cafile=f"{CERTIFICATES}/authority.pem")
    context.load_cert_chain(f"{CERTIFICATES}/peer.pem")
    context.set_alpn_protocols(["coap"])
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def security_context(sender, recipient):
    """The OSCORE context of ../README.md, in a folder, as the library wants it."""
    folder = tempfile.mkdtemp()
    settings = {
        "secret_hex": "0102030405060708090a0b0c0d0e0f10", "salt_hex": "9e7ca92223786340",
        "sender-id_ascii": sender, "recipient-id_ascii": recipient,
    }
    with open(f"{folder}/settings.json", "w") as file:
        json.dump(settings, file)
    return {"oscore": {"basedir": folder}}


async def serve(port, host, scheme):
    site = resource.Site()
    for path, what in {
        ("test",): Bytes(digits(60)),
        ("large",): Bytes(digits(1 << 20)),
        ("medium",): Bytes(digits(10_000)),
        ("a b",): Bytes(b"spaced"),
        ("separate",): Bytes(b"that took a while", 0.5),
        ("query",): Query(),
        ("echo",): Echo(),
        ("length",): Length(),
        ("count",): Count(),
        ("tagged",): Tagged(),
        ("fresh",): Fresh(),
        ("time",): Time(0.25, lambda number: str(number).encode()),
        ("times",): Time(0.5, lambda number: str(number % 10).encode() * 3000),
    }.items():
        site.add_resource(path, what)
    site.add_resource([".well-known", "core"], resource.WKCResource(site.get_resources_as_linkheader))
    if scheme == "coap" and os.environ.get("INTEROP_OSCORE"):
        credentials = aiocoap.credentials.CredentialsMap()
        credentials.load_from_dict({":client": security_context("server", "client")})
        protected = aiocoap.oscore_sitewrapper.OscoreSiteWrapper(site, credentials)
        await Context.create_server_context(protected, bind=(host, port), server_credentials=credentials)
    elif scheme == "coap":
        await Context.create_server_context(site, bind=(host, port))
    elif scheme == "coaps+tcp":
        # The library adds one to the port.
        bind, context = (host, port - 1), tls_context(ssl.Purpose.CLIENT_AUTH)
        await Context.create_server_context(site, bind=bind, transports=["tlsserver"], _ssl_context=context)
    elif scheme == "coap+tcp":
        await Context.create_server_context(site, bind=(host, port), transports=["tcpserver"])
    else:
        sys.exit(UNSUPPORTED)
    print("ready", flush=True)
    await asyncio.get_running_loop().create_future()


def shown(response):
    options = ",".join(f"{int(o.number)}:{o.encode().hex()}" for o in response.opt.option_list())
    code = int(response.code)
    print(f"{code >> 5}.{code & 31:02} {options or '-'} {response.payload.hex() or '-'}", flush=True)


async def one(context, base, words):
    method, path, *settings = words
    if method == "PING":
        raise NotImplementedError("no API for a ping")
    message = Message(code=getattr(Code, "iPATCH" if method == "IPATCH" else method), mtype=CON)
    message.set_request_uri(base)
    parts = urlsplit(path)
    message.opt.uri_path = [unquote(part) for part in parts.path[1:].split("/")]
    if parts.query:
        message.opt.uri_query = [unquote(part) for part in parts.query.split("&")]
    wait, observe = 8.0, 0
    for word in settings:
        key, _, value = word.partition("=")
        if key == "non":
            message.mtype = NON
        elif key == "payload":
            message.payload = bytes.fromhex(value)
        elif key == "digits":
            message.payload = digits(int(value))
        elif key == "opt":
            number, _, content = value.partition(":")
            message.opt.add_option(OpaqueOption(OptionNumber(int(number)), bytes.fromhex(content)))
        elif key == "observe":
            observe = int(value)
            message.opt.observe = 0
        elif key == "wait":
            wait = float(value)
        elif key == "block":
            szx = int(value).bit_length() - 5
            if method == "GET":
                message.opt.block2 = (0, False, szx)
            else:
                message.remote.maximum_block_size_exp = szx

    async def answered():
        request = context.request(message)
        response = await request.response
        shown(response)
        if observe and response.code.is_successful():
            seen = 1
            async for state in request.observation:
                shown(state)
                seen += 1
                if seen == observe:
                    break
            request.observation.cancel()
            await asyncio.sleep(0.2)

    await asyncio.wait_for(answered(), wait)


async def ask(base):
    if base.startswith("coaps:"):
        sys.exit(UNSUPPORTED)
    context = await Context.create_client_context()
    if CERTIFICATES:
        # The library's credentials for TLS name an authority and no certificate of a client.
        context.client_credentials.ssl_client_context = lambda *_: tls_context(ssl.Purpose.SERVER_AUTH)
    if os.environ.get("INTEROP_OSCORE"):
        context.client_credentials.load_from_dict({f"{base}/*": security_context("client", "server")})
    loop = asyncio.get_running_loop()
    print("ready", flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        try:
            await one(context, base, line.split())
        except NotImplementedError as error:
            print("unsupported", error)
        except asyncio.TimeoutError:
            print("error no answer")
        except Exception as error:  # a failed request is a result, whatever its kind
            print("error", type(error).__name__, str(error).split("\n")[0])
        print(".", flush=True)
    os._exit(0)


if sys.argv[1] == "server":
    asyncio.run(serve(int(sys.argv[2]), sys.argv[3], sys.argv[4] if len(sys.argv) > 4 else "coap"))
else:
    asyncio.run(ask(sys.argv[2]))
