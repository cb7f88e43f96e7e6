//! What is read.

use crate::bench::{Bench, PATIENCE, Refusal, bytes, read, reason, refusal, without_waiting_for_threads};
use acpd_host::FileRules;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

async fn lines(bench: &Bench, line: Value, limit: Value) -> Result<String, Refusal> {
    read(&bench.files, json!({"path": bench.text("cwd/file"), "line": line, "limit": limit})).await
}

// contract 2.2, FS-2: what line and limit choose, and that nothing of it is changed
#[tokio::test]
async fn lines_are_counted_from_one_and_kept_as_they_are() {
    let bench = Bench::new().await;
    let null = Value::Null;
    let three = "one\r\ntwo\n\tthree";
    let ended = "one\ntwo\n";
    let max = json!(u64::MAX);
    for (file, line, limit, expected) in [
        (three, null.clone(), null.clone(), three),
        (three, json!(1), null.clone(), three),
        (three, json!(0), null.clone(), three),
        (three, json!(0), json!(1), "one\r\n"),
        (three, json!(1), json!(1), "one\r\n"),
        (three, json!(2), json!(1), "two\n"),
        (three, json!(2), json!(2), "two\n\tthree"),
        (three, json!(2), json!(7), "two\n\tthree"),
        (three, json!(3), null.clone(), "\tthree"),
        (three, json!(4), null.clone(), ""),
        (three, max.clone(), null.clone(), ""),
        (three, null.clone(), json!(0), ""),
        (three, json!(2), json!(0), ""),
        (three, null.clone(), json!(2), "one\r\ntwo\n"),
        (three, null.clone(), max.clone(), three),
        (three, max.clone(), max.clone(), ""),
        (three, json!(1e30), json!(1e30), ""),
        (three, json!(2.0), json!(1.0), "two\n"),
        (ended, json!(2), json!(1), "two\n"),
        (ended, json!(3), null.clone(), ""),
        (ended, null.clone(), null.clone(), ended),
        ("\n\n", json!(2), json!(1), "\n"),
        ("\r\n", null.clone(), null.clone(), "\r\n"),
        ("a\rb", json!(2), null.clone(), ""),
        ("", null.clone(), null.clone(), ""),
        ("", json!(1), json!(1), ""),
        ("\u{feff}mark", null.clone(), null.clone(), "\u{feff}mark"),
        ("nul \0 \u{7f} \u{1f600}\u{2028}", null.clone(), null.clone(), "nul \0 \u{7f} \u{1f600}\u{2028}"),
    ] {
        bench.put("cwd/file", file);
        let read = lines(&bench, line.clone(), limit.clone()).await;
        assert_eq!(read.as_deref(), Ok(expected), "line {line}, limit {limit} of {file:?}");
    }
}

// FS-2: pages that follow each other are the file, also across the pieces in which it is read
#[tokio::test]
async fn pages_make_up_the_file() {
    let bench = Bench::new().await;
    let text: String = (0..20_000).map(|line| format!("line {line} é\r\n")).collect();
    bench.put("cwd/file", &text);
    let mut pages = String::new();
    for page in 0..20 {
        pages += &lines(&bench, json!(page * 1000 + 1), json!(1000)).await.unwrap();
    }
    assert!(pages == text, "the pages differ from the file");
}

// FS-1, FS-2: what is no request is refused with the field and what to give
#[tokio::test]
async fn a_wrong_field_is_named() {
    let bench = Bench::new().await;
    bench.put("cwd/file", "text");
    let path = bench.text("cwd/file");
    let long = format!("/{}", "x".repeat(4096));
    for (params, field, says) in [
        (json!({"path": "cwd/file"}), "path", r#"path: "cwd/file" is not absolute; give the full path"#),
        (json!({"path": ""}), "path", r#"path: "" is not absolute; give the full path"#),
        (json!({"path": "~/file"}), "path", r#"path: "~/file" is not absolute; give the full path"#),
        (json!({"path": "file:///etc/passwd"}), "path", r#"path: "file:///etc/passwd" is not absolute"#),
        (json!({"path": "/a\0b"}), "path", r#"path: "/a\0b" contains a NUL character"#),
        (json!({"path": long}), "path", "path: longer than 4096 bytes"),
        (json!({"path": null}), "path", "path: a string is required"),
        (json!({"path": 7}), "path", "path: a string is required"),
        (json!({}), "path", "path: a string is required"),
        (json!([]), "params", "params: "),
        (json!("text"), "params", "params: "),
        (json!({"path": path, "line": -1}), "line", "line: a whole number, 0 or more, is required"),
        (json!({"path": path, "line": 1.5}), "line", "line: a whole number, 0 or more, is required"),
        (json!({"path": path, "line": "1"}), "line", "line: a whole number, 0 or more, is required"),
        (json!({"path": path, "limit": [1]}), "limit", "limit: a whole number, 0 or more, is required"),
        (json!({"path": path, "limit": true}), "limit", "limit: a whole number, 0 or more, is required"),
    ] {
        let refused = read(&bench.files, params.clone()).await.unwrap_err();
        assert_eq!((refused.code, &refused.data), (-32602, &json!({"field": field})), "{params}");
        assert!(refused.message.starts_with(says), "{} for {params}", refused.message);
    }
    for (params, says) in [
        (r#"{"path":"/a","path":"/b"}"#, "params: duplicate field `path`"),
        (r#"{"path":"/a\ud800"}"#, "path: not a text: "),
        ("not JSON", "params: "),
        ("", "params: "),
    ] {
        let error = bench.files.read(params.to_owned().into()).await.unwrap_err();
        assert_eq!(refusal(&error).code, -32602);
        assert!(refusal(&error).message.starts_with(says), "{error} for {params}");
    }
    let half = bench.files.read(bytes(&json!({"path": path})).slice(..10)).await.unwrap_err();
    assert_eq!(refusal(&half).code, -32602);
}

// FS-3: a missing file is -32002 with its path, in the words agents look for
#[tokio::test]
async fn a_missing_file_is_not_found() {
    let bench = Bench::new().await;
    bench.put("cwd/file", "text");
    bench.link("cwd/dangling", "nothing");
    for name in ["cwd/missing", "cwd/no/such/directory", "cwd/file/below", "cwd/dangling", "cwd/missing/"] {
        let path = bench.text(name);
        let expected = Refusal {
            code: -32002,
            message: format!("Resource not found: {path}"),
            data: json!({"path": path, "reason": "not_found"}),
        };
        assert_eq!(bench.read(name).await, Err(expected));
    }
}

// FS-3: what is no text file is a clean error; a pipe that nobody writes to does not block
#[tokio::test]
async fn what_is_no_text_is_refused() {
    let bench = Bench::new().await;
    bench.put("cwd/binary", b"text\n\xff\xfe");
    bench.put("cwd/cut", &"é".as_bytes()[..1]);
    mknodat(CWD, bench.path("cwd/pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(bench.path("cwd/socket")).unwrap();
    for (name, expected) in [
        ("cwd", "directory"),
        ("cwd/", "directory"),
        ("cwd/.", "directory"),
        ("cwd/x/..", "directory"),
        ("cwd/binary", "not_text"),
        ("cwd/cut", "not_text"),
        ("cwd/pipe", "special"),
        ("cwd/socket", "special"),
    ] {
        assert_eq!(reason(bench.read(name).await), (-32602, expected.to_owned()), "{name}");
    }
    let first = read(&bench.files, json!({"path": bench.text("cwd/binary"), "limit": 1})).await;
    assert_eq!(first.as_deref(), Ok("text\n"), "only what is returned has to be text");
}

// FS-3: what is no regular file is not even opened, which could wake up whoever is at its other end
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_pipe_is_not_opened() {
    use rustix::fs::inotify;
    let bench = Bench::new().await;
    bench.put("cwd/file", "text");
    mknodat(CWD, bench.path("cwd/pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
    for name in ["cwd/pipe", "cwd/file"] {
        inotify::add_watch(&watch, bench.path(name), inotify::WatchFlags::OPEN).unwrap();
    }
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    let mut opened = inotify::Reader::new(&watch, &mut buffer);
    assert_eq!(reason(bench.read("cwd/pipe").await), (-32602, "special".to_owned()));
    assert_eq!(reason(bench.write("cwd/pipe", "x").await), (-32602, "special".to_owned()));
    assert_eq!(opened.next().err(), Some(rustix::io::Errno::AGAIN));
    bench.read("cwd/file").await.unwrap();
    assert!(opened.next().is_ok(), "an opening is seen");
}

// FS-3: devices and files that are none, where nothing confines the session
#[test]
fn devices_and_files_of_the_kernel_do_not_block() {
    without_waiting_for_threads(async {
        let bench =
            Bench::with(FileRules { confine: false, max_bytes: 1 << 16, ..FileRules::default() }).await;
        let read = async |path: &str| read(&bench.files, json!({"path": path})).await;
        for device in ["/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/urandom"] {
            if std::fs::exists(device).unwrap() {
                assert_eq!(reason(read(device).await), (-32602, "special".to_owned()), "{device}");
            }
        }
        if std::fs::exists("/proc/self/mem").unwrap() {
            // Says that it has no bytes, and gives some.
            assert!(read("/proc/self/status").await.unwrap().contains("Pid:"));
            assert_eq!(reason(read("/proc/self/mem").await), (-32603, "failed".to_owned()));
            assert_eq!(reason(read("/proc/self/fd/0/x").await).0, -32002);
        }
        if std::fs::exists("/proc/kmsg").unwrap() {
            // Waits for the kernel's next message, or is not for us, or gives what is there.
            let _either = read("/proc/kmsg").await;
        }
    });
}

// FS-3: over the bound is an error, but the lines of a huge file can be read
#[tokio::test]
async fn size_is_bounded_by_what_is_returned() {
    let bench = Bench::with(FileRules { confine: true, max_bytes: 1000, ..FileRules::default() }).await;
    bench.put("cwd/file", "x".repeat(1000));
    assert_eq!(lines(&bench, Value::Null, Value::Null).await.unwrap().len(), 1000);
    bench.put("cwd/file", "x".repeat(1001));
    let refused = lines(&bench, Value::Null, Value::Null).await.unwrap_err();
    let path = bench.text("cwd/file");
    assert_eq!(refused.data, json!({"path": path, "reason": "too_large", "limit": 1000}));
    assert!(refused.message.ends_with("read it in pieces, with line and limit"), "{}", refused.message);
    assert_eq!(reason(lines(&bench, json!(1), json!(1)).await), (-32602, "too_large".to_owned()));

    let many: String = (1..=300_000).map(|line| format!("{line}\n")).collect();
    bench.put("cwd/file", many);
    assert_eq!(lines(&bench, json!(299_999), json!(5)).await.as_deref(), Ok("299999\n300000\n"));
    assert_eq!(lines(&bench, json!(10), json!(2)).await.as_deref(), Ok("10\n11\n"));
    assert_eq!(reason(lines(&bench, json!(10), Value::Null).await), (-32602, "too_large".to_owned()));
}

// FS-3: the way to the first line is bounded too, and the error names the field and the way out
#[tokio::test]
async fn what_is_skipped_is_bounded() {
    let bench = Bench::with(FileRules { max_skipped: 1 << 20, ..FileRules::default() }).await;
    std::fs::File::create(bench.path("cwd/hole")).unwrap().set_len(1 << 41).unwrap();
    let params = json!({"path": bench.text("cwd/hole"), "line": 5, "limit": 1});
    let refused = read(&bench.files, params).await.unwrap_err();
    let path = bench.text("cwd/hole");
    let data = json!({"field": "line", "path": path, "reason": "too_large", "limit": 1 << 20});
    assert_eq!((refused.code, refused.data), (-32602, data));
    assert!(refused.message.starts_with("line: more than 1048576 bytes"), "{}", refused.message);
    bench.put("cwd/file", "x\n".repeat(1 << 19) + "last");
    assert_eq!(lines(&bench, json!((1 << 19) + 1), json!(1)).await.as_deref(), Ok("last"));
}

// contract 2.2: a read that nobody waits for makes room for others
#[test]
fn a_read_that_is_dropped_stops() {
    without_waiting_for_threads(async {
        let bench = Bench::with(FileRules { max_skipped: u64::MAX, ..FileRules::default() }).await;
        // A hole of 2 TiB: minutes of counting lines that are not there.
        std::fs::File::create(bench.path("cwd/hole")).unwrap().set_len(1 << 41).unwrap();
        let params = json!({"path": bench.text("cwd/hole"), "line": u64::MAX});
        for _ in 0..4 {
            let mut reading = Box::pin(bench.files.read(bytes(&params)));
            tokio::select! {
                biased;
                read = &mut reading => panic!("read to the end: {read:?}"),
                () = std::future::ready(()) => {}
            }
        }
        // Waits for all reads before it.
        tokio::time::timeout(PATIENCE, bench.write("cwd/file", "text")).await.unwrap().unwrap();
    });
}
