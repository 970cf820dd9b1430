//! `ebbtide proxy`: what it needs, and a path that stands for a server.
#![cfg(target_os = "linux")]

use crate::common::private::write_private;
use crate::common::{Serving, command, ebbtide, refuse, succeed};
use std::net::UdpSocket;
use std::time::Duration;

#[test]
fn a_proxy_that_may_reach_nothing_does_not_start() {
    refuse(&["proxy"], &["--allow"]);
    refuse(&["proxy", "--allow", "10.0.0.1/8"], &["10.0.0.1/8", "such as 10.0.0.0/8"]);
    refuse(&["proxy", "--backend", "floor=coap://192.0.2.1/"], &["/floor/2=coap://"]);
    refuse(&["proxy", "--allow", "10.0.0.0/8", "--cell", "10.0.0.0/8=0"], &["'0'", "such as 16"]);
}

#[test]
fn a_path_of_the_proxy_stands_for_a_server() {
    let server = Serving::start(&[]);
    let proxy = Serving::proxy(&["--backend", &format!("/far=coap://{}/", server.address)]);
    let far = succeed(&["get", &proxy.uri("/far/test")]);
    assert_eq!(far, succeed(&["get", &server.uri("/test")]));
}

#[test]
fn the_directory_of_a_proxy_is_discovered_beside_a_backend_of_all_paths() {
    let server = Serving::start(&[]);
    let backend = format!("/=coap://{}/", server.address);
    let proxy = Serving::proxy(&["--backend", &backend, "--directory"]);
    let found = succeed(&["get", &proxy.uri("/.well-known/core?rt=core.rd*")]);
    assert!(found.contains("</rd>;rt=\"core.rd\""), "{found}");
    assert_eq!(succeed(&["get", &proxy.uri("/test")]), succeed(&["get", &server.uri("/test")]));
}

#[test]
fn topics_of_a_proxy_are_back_after_it_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state").to_str().unwrap().to_owned();
    let start = || Serving::proxy(&["--broker", "--state", &state]);
    let proxy = start();
    let topic = "{0: \"room\", 2: \"core.ps.data\"}";
    let made = succeed(&["post", &proxy.uri("/ps"), "-t", "606", "--cbor", topic, "--pretty"]);
    let data = made.split('"').find(|part| part.starts_with("/ps/data/")).unwrap().to_owned();
    assert_eq!(succeed(&["get", &proxy.uri("/ps?rt=core.ps.data")]).trim(), format!("<{data}>"));
    succeed(&["put", &proxy.uri(&data), "-e", "22.5"]);
    drop(proxy);
    assert_eq!(succeed(&["get", &start().uri(&data)]).trim(), "22.5");
}

#[test]
fn a_topic_belongs_to_the_client_that_has_created_it_and_all_may_publish() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    write_private(&keys, "one:first\ntwo:second\n");
    let serve = ["serve", "--broker", "--bind", "coaps://127.0.0.1:0", "--psk-file"];
    let mut serve = command(&[&serve[..], &[keys.to_str().unwrap()]].concat());
    let broker = Serving::spawn_until(&mut serve, "serving at coaps://");
    let (one, two) = (["-u", "one", "-k", "first"], ["-u", "two", "-k", "second"]);
    let uri = |path: &str| format!("coaps://{}{path}", broker.address);
    let topic = ["-t", "606", "--cbor", "{0: \"room\", 2: \"core.ps.data\"}", "--pretty"];
    let made = succeed(&[&["post", &uri("/ps")][..], &topic, &one].concat());
    let data = made.split('"').find(|part| part.starts_with("/ps/data/")).unwrap();
    let own = uri(&data.replace("/data", ""));
    succeed(&[&["put", &uri(data), "-e", "22.5"][..], &two].concat());
    let refused = ebbtide(&[&["delete", &own][..], &two].concat());
    assert!(refused.code == Some(1) && refused.err.contains("4.03"), "{}", refused.err);
    assert_eq!(succeed(&[&["get", &uri(data)][..], &two].concat()).trim(), "22.5");
    succeed(&[&["delete", &own][..], &one].concat());
}

#[test]
fn coap_clients_discover_the_http_side_of_a_proxy() {
    let start = |http: &str| Serving::proxy(&["--allow", "10.0.0.0/8", "--http", http]);
    let listed = |proxy: &Serving| succeed(&["get", &proxy.uri("/.well-known/core?rt=core.hc")]);
    let mut proxy = start("127.0.0.1:0");
    let found = listed(&proxy);
    let at = proxy.after("gateway at http://").trim_end_matches("/hc/").to_owned();
    assert_eq!(found.trim(), format!("</hc/>;anchor=\"http://{at}\";rt=\"core.hc\""));
    assert_eq!(listed(&start("0.0.0.0:0")).trim(), "", "no client knows this address");
}

#[test]
fn the_metrics_of_a_proxy_have_the_load_of_each_cell() {
    let server = Serving::start(&[]);
    let backend = format!("/far=coap://{}/", server.address);
    let args = ["--backend", &backend, "--cell", "127.0.0.0/8=7", "--metrics", "127.0.0.1:0"];
    let mut proxy = Serving::proxy(&args);
    let metrics = proxy.after("metrics at http://").trim_end_matches("/metrics").to_owned();
    succeed(&["get", &proxy.uri("/far/test")]);
    let scraped = crate::metrics::scrape(&metrics);
    let cell =
        |name: &str, more: &str| scraped.get(&format!("{name}{{cell=\"127.0.0.0/8\"{more}}}"));
    for state in ["in-flight", "waiting"] {
        let more = format!(",state=\"{state}\"");
        assert_eq!(cell("ebbtide_cell_requests", &more), Some(&0.0), "{scraped:?}");
    }
    assert!((1.0..=7.0).contains(cell("ebbtide_cell_budget", "").unwrap()));
    assert!(*cell("ebbtide_cell_round_trip_seconds", "").unwrap() > 0.0);
}

#[test]
fn the_proxy_and_the_devices_behind_it_have_keys_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        write_private(&path, text);
        path.to_str().unwrap().to_owned()
    };
    let (clients, devices) = (file("clients", "app:outer\n"), file("devices", "gateway:inner\n"));
    let serve = ["serve", "--bind", "coaps://127.0.0.1:0", "--psk-file", &devices];
    let device = Serving::spawn_until(&mut command(&serve), "serving at coaps://");
    let backend = format!("/far=coaps://{}/", device.address);
    let proxy = ["proxy", "--bind", "coaps://127.0.0.1:0", "--psk-file", &clients];
    let more = ["--device-psk-file", &devices, "--backend", &backend];
    let mut proxy = command(&[&proxy[..], &more].concat());
    let proxy = Serving::spawn_until(&mut proxy, "proxy at coaps://");
    let uri = format!("coaps://{}/far/test", proxy.address);
    assert_eq!(succeed(&["get", &uri, "-u", "app", "-k", "outer"]).len(), 60);
    let wrong = ebbtide(&["get", &uri, "-u", "gateway", "-k", "inner", "-B", "5"]);
    assert_ne!(wrong.code, Some(0), "{}", wrong.out);
}

#[test]
fn registrations_and_observations_are_back_after_the_proxy_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state").to_str().unwrap().to_owned();
    let server = Serving::start(&[]);
    let backend = format!("/far=coap://{}/", server.address);
    let start = |bind: &str| {
        let proxy = ["proxy", "--bind", bind, "--backend", &backend];
        let more = ["--directory", "--state", &state];
        Serving::spawn_until(&mut command(&[&proxy[..], &more].concat()), "proxy at coap://")
    };
    let proxy = start("127.0.0.1:0");
    let observer = UdpSocket::bind("127.0.0.1:0").unwrap();
    observer.connect(&proxy.address).unwrap();
    observer.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // An observer of /far/time with the token 7.
    observer.send(b"\x41\x01\x00\x01\x07\x60\x53far\x04time").unwrap();
    let next_state = || {
        let mut bytes = [0; 100];
        loop {
            // A refused port, while no proxy is there, is an error of the socket.
            let Ok(length) = observer.recv(&mut bytes) else { continue };
            if bytes[..length].get(1) == Some(&0x45) {
                observer.send(&[0x60, 0, bytes[2], bytes[3]]).unwrap();
                return bytes[..length].to_vec();
            }
        }
    };
    // It is stored a tenth of a second after it has registered.
    let is_stored =
        || std::fs::read(&state).is_ok_and(|stored| stored.windows(4).any(|part| part == b"time"));
    while !is_stored() {
        next_state();
    }
    let register = proxy.uri("/rd?ep=node1&base=coap://192.0.2.1");
    succeed(&["post", &register, "-e", "</temp>;rt=temperature", "-t", "link-format"]);
    let (address, path) = (proxy.address.clone(), proxy.uri("/rd-lookup/res"));
    drop(proxy);
    let next = start(&address);
    assert_eq!(succeed(&["get", &path]).trim(), "<coap://192.0.2.1/temp>;rt=temperature");
    let state = next_state();
    assert_eq!(state[4], 7, "its own token");
    drop(next);
}
