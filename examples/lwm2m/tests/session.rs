//! A device and its server against each other, on one DTLS session.
#![allow(clippy::unwrap_used, clippy::panic, reason = "in a test a panic is how it fails")]

use ebbtide::dtls::{DtlsBind, Psk};
use ebbtide::{Code, ContentFormat, Request, Server, ServerConfig};
use lwm2m::operations::{execute, read, write};
use lwm2m::server::Devices;
use lwm2m::tlv::TLV;
use lwm2m::{Device, Security};
use std::time::Duration;
use tokio::sync::oneshot;

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// Waits for another task, a minute at most.
async fn until<T>(mut is: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..12_000 {
        if let Some(found) = is().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("not within a minute");
}

#[tokio::test]
async fn a_device_registers_is_asked_and_leaves() {
    let devices = Devices::default();
    let keys = |identity: &[u8]| (identity == b"dev-1").then(|| Psk::new(b"secret").ok()).flatten();
    let config = ServerConfig::new().bind_dtls(DtlsBind::new(([127, 0, 0, 1], 0), keys));
    let server = Server::without_plain_sockets(devices.router(), config).unwrap();
    let base = format!("coaps://{}", server.dtls_addrs()[0]);
    let (device, commands) = Device::new("dev-1", 60);
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn({
        let device = device.clone();
        let security = Security::new(&base, "dev-1", b"secret").unwrap();
        async move { device.run(&security, commands, async { drop(stopped.await) }).await }
    });
    let peer = until(async || devices.get("dev-1")).await;

    assert_eq!(read(&peer, "/3/0/0").await.unwrap(), [pair("/3/0/0", "Ebbtide")]);
    let all = read(&peer, "/3/0").await.unwrap();
    assert!(
        all.contains(&pair("/3/0/0", "Ebbtide")) && all.contains(&pair("/3/0/11/0", "0")),
        "{all:?}"
    );
    let refused = write(&peer, "/3/0/0", "mine").await.unwrap_err();
    let response = refused.response().unwrap();
    assert_eq!(response.code(), Code::METHOD_NOT_ALLOWED);

    let get = |path| Request::get(peer.uri(path).unwrap()).unwrap();
    // Without a Content-Format Leshan cannot decode it.
    let alone = peer.request(get("/3/0/0")).await.unwrap();
    assert_eq!(alone.content_format(), Some(ContentFormat::TEXT));

    // In TLV, as servers of LwM2M 1.0 ask and write.
    let tlv = async |request: Request| peer.request(request.accept(TLV)).await.unwrap();
    assert_eq!(tlv(get("/3/0/11")).await.body(), &b"\x83\x0b\x41\x00\x00"[..]);
    assert_eq!(read(&peer, "/3/0/11").await.unwrap(), [pair("/3/0/11/0", "0")]);
    let device_object = tlv(get("/3/0")).await;
    assert_eq!(device_object.content_format(), Some(TLV));
    assert!(device_object.body().starts_with(b"\xc7\x00Ebbtide\xc3\x031.0\x83\x0b\x41\x00\x00"));
    let put = |path, body: &'static [u8]| {
        Request::put(peer.uri(path).unwrap()).unwrap().payload(body).format(TLV)
    };
    assert_eq!(tlv(put("/1/0", b"\xc1\x01\x5a")).await.code(), Code::CHANGED);
    assert_eq!(read(&peer, "/1/0/1").await.unwrap(), [pair("/1/0/1", "90")]);
    assert_eq!(tlv(put("/1/0/1", b"\xc1\x01")).await.code(), Code::BAD_REQUEST);
    // All or nothing: resource 99 cannot be written, and text is no lifetime.
    let half = tlv(put("/1/0", b"\xc1\x01\x5b\xc1\x63\x00")).await;
    assert_eq!(half.code(), Code::METHOD_NOT_ALLOWED);
    assert_eq!(
        write(&peer, "/1/0/1", "long").await.unwrap_err().response().unwrap().code(),
        Code::BAD_REQUEST
    );
    assert_eq!(read(&peer, "/1/0/1").await.unwrap(), [pair("/1/0/1", "90")]);
    assert_eq!(tlv(put("/0/0", b"")).await.code(), Code::UNAUTHORIZED);
    assert_eq!(tlv(put("/9/9", b"")).await.code(), Code::NOT_FOUND);
    // Object 0 is the device's own.
    for path in ["/0/0", "/0/0/5"] {
        assert_eq!(tlv(get(path)).await.code(), Code::UNAUTHORIZED);
    }

    let mut temperatures = peer.observe("/3303/0/5700").unwrap();
    assert_eq!(temperatures.next().await.unwrap().unwrap().text(), "21.5");
    device.set([((3303, 0, 5700), "22.5")]);
    assert_eq!(temperatures.next().await.unwrap().unwrap().text(), "22.5");

    // Firmware, pushed in blocks, and installed.
    write(&peer, "/5/0/0", vec![7; 60_000]).await.unwrap();
    assert_eq!(read(&peer, "/5/0/3").await.unwrap(), [pair("/5/0/3", "2")]);
    execute(&peer, "/5/0/2").await.unwrap();
    until(async || (read(&peer, "/5/0/5").await.unwrap()[0].1 == "1").then_some(())).await;
    assert_eq!(read(&peer, "/3/0/3").await.unwrap(), [pair("/3/0/3", "1.1")]);

    // A new lifetime is reported by an update, over the same session.
    write(&peer, "/1/0/1", "120").await.unwrap();
    execute(&peer, "/1/0/8").await.unwrap();
    assert_eq!(read(&peer, "/1/0/1").await.unwrap(), [pair("/1/0/1", "120")]);
    assert_eq!(server.snapshot().dtls.established(), 1);

    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    assert!(devices.get("dev-1").is_none());
}
