//! What an engine is connected to: servers and streams that cannot be used, fleets beside each other, TLS.

use crate::battery::{directory, node, piece, session};
use crate::server::{LIMIT, Server, Used, place, soon};
use acpd_fleet::{Engine, Expected, Position};
use acpd_fleet_nats::{Nats, NatsError, NatsSettings, Tls};
use async_nats::jetstream;
use data_encoding::BASE64URL_NOPAD;
use nkeys::KeyPair as Key;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::time::Duration;

// design fleet, access: with a prefix each, fleets share a server and see nothing of one another
#[tokio::test]
async fn two_fleets_share_a_server() {
    let server = Server::start();
    let one = Nats::connect(NatsSettings { prefix: "one".to_owned(), ..server.settings() })
        .await
        .expect("it can be used");
    let two = Nats::connect(NatsSettings { prefix: "one_two".to_owned(), ..server.settings() }).await;
    let two = two.expect("it can be used");
    let (of, mine) = (node("a"), session("s", &node("a")));
    one.put_node(&of, Expected::Nothing).await.expect("it is new");
    one.put_session(&mine, Expected::Nothing).await.expect("it is new");
    one.append(&mine.session, &piece(1, 1, 1), Position::default()).await.expect("it is the first");
    assert_eq!(two.node(&of.name).await, Ok(None));
    assert_eq!(two.session(&mine.session).await, Ok(None));
    assert_eq!(two.last(&mine.session).await, Ok(None));
    let known = directory(&mut two.watch().await.expect("it answers")).await;
    assert_eq!((known.nodes().count(), known.sessions().count()), (0, 0));
    two.put_node(&of, Expected::Nothing).await.expect("it is new there");
    two.append(&mine.session, &piece(1, 1, 1), Position::default()).await.expect("it is the first there");
    for prefix in ["", "a.b", "a b", "a*", "ä"] {
        let settings = NatsSettings { prefix: prefix.to_owned(), ..server.settings() };
        let error = Nats::connect(settings).await.expect_err("it cannot stand in a subject");
        assert!(matches!(error, NatsError::Prefix(_)), "{error}");
    }
}

// design fleet: a server that is too old is refused in words that say so
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_old_server_is_refused() {
    let listener = TcpListener::bind(place(1)[0]).expect("it is free");
    let url = format!("nats://{}", listener.local_addr().expect("it is bound"));
    let old = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("it is called");
        stream.set_read_timeout(Some(LIMIT)).expect("that is long enough");
        let info = r#"{"server_id":"x","version":"2.10.29","proto":1,"headers":true,"jetstream":true,"max_payload":1048576}"#;
        write!(stream, "INFO {info}\r\n").expect("it listens");
        let lines = BufReader::new(stream.try_clone().expect("a socket has many handles")).lines();
        for line in lines.map_while(Result::ok) {
            if line == "PING" {
                stream.write_all(b"PONG\r\n").expect("it listens");
            }
        }
    });
    let error = Nats::connect(NatsSettings::new(vec![url])).await.expect_err("it is too old");
    assert!(matches!(&error, NatsError::TooOld { version } if version == "2.10.29"), "{error}");
    assert!(!error.is_temporary());
    assert_eq!(error.to_string(), "the NATS server is of version 2.10.29; a fleet needs 2.11 or newer");
    old.join().expect("it has seen the end");
}

// contract 7.2: all nodes of a fleet have the same, and how long the archive is kept is what was said last
#[tokio::test]
async fn nodes_agree_on_the_lease() {
    let server = Server::start();
    let _first = Nats::connect(server.settings()).await.expect("it can be used");
    let other = NatsSettings { lease: Duration::from_secs(7), ..server.settings() };
    let error = Nats::connect(other).await.expect_err("it is another lease");
    assert!(matches!(error, NatsError::Unusable { .. }) && !error.is_temporary(), "{error}");
    assert!(error.to_string().contains("20s") && error.to_string().contains("7s"), "{error}");
    let (age, bytes) = (Duration::from_secs(60), Some(1 << 20));
    let kept = NatsSettings { archive_age: age, archive_bytes: bytes, ..server.settings() };
    let _third = Nats::connect(kept).await.expect("it can be used");
    let context = jetstream::new(server.client().await);
    let mut stream = context.get_stream("ACPD_LOG").await.expect("it is there");
    let config = &stream.info().await.expect("it answers").config;
    assert_eq!((config.max_age, config.max_bytes), (age, 1 << 20));
    // A stream of that name of another owner stays as it is.
    let theirs = jetstream::stream::Config { subjects: vec!["else.>".to_owned()], ..("ELSE_LOG".into()) };
    context.create_stream(theirs).await.expect("it is new");
    let error = Nats::connect(NatsSettings { prefix: "else".to_owned(), ..server.settings() }).await;
    let error = error.expect_err("it is not a fleet's");
    assert!(matches!(&error, NatsError::Unusable { stream, .. } if stream == "ELSE_LOG"), "{error}");
}

// design fleet: without a server, or with one that keeps nothing, a node hears so and can try again
#[tokio::test]
async fn a_server_that_is_not_there_is_said_to_be() {
    let mut server = Server::start();
    server.kill();
    let error = Nats::connect(server.short_settings()).await.expect_err("it is not there");
    assert!(error.is_temporary(), "{error}");
    let error =
        Nats::connect(NatsSettings { urls: vec!["http://x y".to_owned()], ..server.settings() }).await;
    let error = error.expect_err("it is no address");
    assert!(matches!(error, NatsError::Address(_)) && !error.is_temporary(), "{error}");
    let credentials = Some(std::env::temp_dir().join("no such file.creds"));
    let error = Nats::connect(NatsSettings { credentials, ..server.settings() }).await;
    let error = error.expect_err("it is not there");
    assert!(matches!(error, NatsError::Credentials { .. }) && !error.is_temporary(), "{error}");
}

// contract 7.2: server and node know each other by their certificates
#[tokio::test]
async fn server_and_node_know_each_other_by_tls() {
    let address = place(1)[0];
    let key = || KeyPair::generate().expect("there is chance");
    let mut authority = CertificateParams::new(Vec::new()).expect("no names");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, key()).expect("it can be signed");
    let issued = |name: String| {
        let key = key();
        let certificate = CertificateParams::new(vec![name]).expect("a name").signed_by(&key, &authority);
        (certificate.expect("it can be signed").pem(), key.serialize_pem())
    };
    let (server_pem, server_key) = issued(address.ip().to_string());
    let (node_pem, node_key) = issued("node".to_owned());
    let files = [("ca.pem", authority.pem()), ("server.pem", server_pem), ("server.key", server_key)];
    let tls = "tls { ca_file: \"FILES/ca.pem\", cert_file: \"FILES/server.pem\", key_file: \"FILES/server.key\", verify: true }";
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let server = Server::start_at(address, tls, &files);
    let own = tempfile::tempdir().expect("a temporary directory");
    let file = |name: &str, text: &str| {
        let path = own.path().join(name);
        std::fs::write(&path, text).expect("writable");
        path
    };
    let ca = Some(file("ca.pem", &authority.pem()));
    let identity = Some((file("node.pem", &node_pem), file("node.key", &node_key)));
    let with = |tls| NatsSettings { tls: Some(tls), ..server.settings() };
    let one = Nats::connect(with(Tls { ca: ca.clone(), identity })).await.expect("they know each other");
    one.put_node(&node("a"), Expected::Nothing).await.expect("it is new");
    let error =
        soon(Nats::connect(with(Tls { ca, identity: None }))).await.expect_err("it shows no certificate");
    assert!(matches!(error, NatsError::Connect { .. } | NatsError::Silent(_)), "{error}");
    let error = soon(Nats::connect(server.settings())).await.expect_err("it does not know the authority");
    assert!(matches!(error, NatsError::Connect { .. } | NatsError::Silent(_)), "{error}");
}

/// What an operator's tools give out: words that `by` has signed of `of`.
fn token(by: &Key, of: &Key, nats: &serde_json::Value) -> String {
    let header = r#"{"typ":"JWT","alg":"ed25519-nkey"}"#;
    let (by_key, of_key) = (by.public_key(), of.public_key());
    let claims = serde_json::json!({ "jti": of_key, "iat": 1, "iss": by_key, "name": "x", "sub": of_key, "nats": nats });
    let signed = format!(
        "{}.{}",
        BASE64URL_NOPAD.encode(header.as_bytes()),
        BASE64URL_NOPAD.encode(claims.to_string().as_bytes())
    );
    let signature = by.sign(signed.as_bytes()).expect("it has a seed");
    format!("{signed}.{}", BASE64URL_NOPAD.encode(&signature))
}

// contract 7.2: servers let in whom a file of credentials names, if its key is the one that it is of
#[tokio::test]
async fn a_server_knows_a_node_by_its_credentials() {
    let (operator, system, account) = (Key::new_operator(), Key::new_account(), Key::new_account());
    let limits = serde_json::json!({
        "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1,
        "leaf": -1, "mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1,
    });
    let of_operator = token(&operator, &operator, &serde_json::json!({ "type": "operator", "version": 2 }));
    let of_account = |key: &Key, limits: &serde_json::Value| {
        token(&operator, key, &serde_json::json!({ "type": "account", "version": 2, "limits": limits }))
    };
    let mut without_streams = limits.clone();
    for kind in ["mem_storage", "disk_storage", "streams", "consumer"] {
        without_streams[kind] = 0.into();
    }
    let more = format!(
        "operator: {of_operator}\nsystem_account: {0}\nresolver: MEMORY\nresolver_preload: {{\n{0}: {1}\n{2}: {3}\n}}",
        system.public_key(),
        of_account(&system, &without_streams),
        account.public_key(),
        of_account(&account, &limits),
    );
    let server = Server::start_at(place(1)[0], &more, &[]);
    let own = tempfile::tempdir().expect("a temporary directory");
    let (node_key, other_key) = (Key::new_user(), Key::new_user());
    let user = serde_json::json!({ "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1 });
    let of_node = token(&account, &node_key, &user);
    let settings = |name: &str, key: &Key| {
        let text = format!(
            "-----BEGIN NATS USER JWT-----\n{of_node}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
            key.seed().expect("it has one")
        );
        let file = own.path().join(name);
        std::fs::write(&file, text).expect("writable");
        NatsSettings { credentials: Some(file), ..server.settings() }
    };
    let one = Nats::connect(settings("node.creds", &node_key)).await.expect("it is let in");
    one.put_node(&node("a"), Expected::Nothing).await.expect("it is new");
    for refused in [settings("other.creds", &other_key), server.settings()] {
        let error = soon(Nats::connect(refused)).await.expect_err("it is not let in");
        assert!(matches!(error, NatsError::Connect { .. } | NatsError::Silent(_)), "{error}");
    }
}
