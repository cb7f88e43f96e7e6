//! Paths and links, in and out of the session's directories.

use crate::bench::{Bench, outside, read, reason, write};
use acpd_host::{FileRules, FileSlots, Files, FilesSpec};
use serde_json::json;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// A session with many links: `cwd/NAME` leads to `cwd/inner/file` for those that stay inside.
async fn linked(rules: FileRules) -> Bench {
    let bench = Bench::with(rules).await;
    std::fs::create_dir(bench.path("cwd/inner")).expect("a directory");
    bench.put("cwd/inner/file", "inner\n");
    bench.put("more/file", "more\n");
    bench.link("cwd/relative", "inner/file");
    bench.link("cwd/absolute", bench.path("cwd/inner/file"));
    bench.link("cwd/directory", "inner");
    bench.link("cwd/chain", "directory/../absolute");
    bench.link("cwd/across", "../more/file");
    bench.link("cwd/across-absolute", bench.path("more/file"));
    bench.link("cwd/round", "../outside/../cwd/inner/file");
    bench.link("cwd/out", "../outside/secret");
    bench.link("cwd/out-absolute", bench.path("outside/secret"));
    bench.link("cwd/out-directory", bench.path("outside"));
    bench.link("cwd/out-chain", "directory/../out-directory/secret");
    bench.link("cwd/out-dangling", "../outside/nothing");
    bench.link("cwd/out-top", "../../../../../../../../../../../../etc/passwd");
    bench.link("cwd/loop", "loop-back");
    bench.link("cwd/loop-back", bench.path("cwd/loop"));
    bench.link("cwd/self", "self/self");
    bench
}

// FS-1: links within and between the roots are followed, absolute ones too
#[tokio::test]
async fn what_stays_inside_is_served() {
    let bench = linked(FileRules::default()).await;
    for (name, expected) in [
        ("cwd/inner/file", "inner\n"),
        ("cwd//inner/./file", "inner\n"),
        ("cwd/relative", "inner\n"),
        ("cwd/absolute", "inner\n"),
        ("cwd/directory/file", "inner\n"),
        ("cwd/directory/../inner/file", "inner\n"),
        ("cwd/chain", "inner\n"),
        ("cwd/across", "more\n"),
        ("cwd/across-absolute", "more\n"),
        ("cwd/round", "inner\n"),
        ("cwd/../more/file", "more\n"),
        ("cwd/inner/../../more/file", "more\n"),
        ("outside/../cwd/inner/file", "inner\n"),
        ("not/there/../../cwd/inner/file", "inner\n"),
        ("more/../cwd/directory/file", "inner\n"),
    ] {
        assert_eq!(bench.read(name).await.as_deref(), Ok(expected), "{name}");
    }
}

/// Names of what is outside, there or not.
const ESCAPES: [&str; 19] = [
    "outside/secret",
    "outside/nothing",
    "outside",
    "",
    "nowhere/at/all",
    "cwd/../outside/secret",
    "cwd/../outside/nothing",
    "cwd/inner/../../outside/secret",
    "cwd/directory/../../outside/secret",
    "cwd/nothing/../../outside/secret",
    "cwd/out",
    "cwd/out-absolute",
    "cwd/out-directory/secret",
    "cwd/out-directory/nothing",
    "cwd/out-directory/../cwd2",
    "cwd/out-chain",
    "cwd/out-dangling",
    "cwd/out-top",
    "cwd-not/file",
];

// FS-1: what leads out is denied, and looks the same whether it is there or not
#[tokio::test]
async fn what_leads_out_is_denied() {
    let bench = linked(FileRules::default()).await;
    for name in ESCAPES {
        assert_eq!(bench.read(name).await, Err(bench.outside(name)));
        assert_eq!(bench.write(name, "mine").await, Err(bench.outside(name)));
    }
    for path in ["/", "/etc/passwd", "/etc/no-such-file", "/proc/self/environ", "/etc/shadow", "/dev/null"] {
        assert_eq!(read(&bench.files, json!({"path": path})).await, Err(outside(path)));
        assert_eq!(write(&bench.files, path, "mine").await, Err(outside(path)));
    }
    bench.assert_outside_is_untouched();
    assert_eq!(bench.names("."), ["cwd", "more", "outside"], "no directory was made");
}

// contract 2.2: confinement can be switched off; the same ways then lead out
#[tokio::test]
async fn without_confinement_links_lead_anywhere() {
    let bench = linked(FileRules { confine: false, ..FileRules::default() }).await;
    let mut served = 0;
    for name in ESCAPES {
        served += i32::from(bench.read(name).await.as_deref() == Ok("secret\n"));
    }
    assert_eq!(served, 9, "the escapes lead somewhere");
    assert!(read(&bench.files, json!({"path": "/proc/self/status"})).await.unwrap().contains("Pid:"));
    assert_eq!(reason(bench.read("outside/nothing").await).0, -32002);
    bench.write("cwd/out-dangling", "made").await.unwrap();
    assert_eq!(bench.get("outside/nothing"), "made");
}

// FS-1: links that lead to each other end in an error
#[tokio::test]
async fn loops_of_links_end() {
    let bench = linked(FileRules::default()).await;
    for name in ["cwd/loop", "cwd/loop-back", "cwd/self", "cwd/self/x"] {
        assert_eq!(reason(bench.read(name).await), (-32602, "links".to_owned()), "{name}");
        assert_eq!(reason(bench.write(name, "x").await), (-32602, "links".to_owned()), "{name}");
    }
    bench.put("cwd/0", "end");
    for link in 1..=41 {
        bench.link(&format!("cwd/{link}"), (link - 1).to_string());
    }
    assert_eq!(bench.read("cwd/40").await.as_deref(), Ok("end"));
    assert_eq!(reason(bench.read("cwd/41").await), (-32602, "links".to_owned()));
}

// FS-1: the directories may be named by links, and nested; each of their names counts
#[tokio::test]
async fn a_root_has_several_names() {
    let bench = Bench::new().await;
    std::fs::create_dir_all(bench.path("outside/real/nested")).unwrap();
    bench.put("outside/real/nested/file", "text");
    bench.put("outside/real/beside", "text");
    bench.link("by-link", "outside/real/nested");
    bench.link("another", "outside/real");
    let directories = vec![bench.path("by-link"), bench.path("missing"), bench.path("by-link/../nested")];
    let spec = FilesSpec { directories, rules: FileRules::default() };
    let files = Files::open(spec, &FileSlots::default()).await;
    for name in ["by-link/file", "outside/real/nested/file", "another/nested/file", "by-link/../nested/file"]
    {
        let path = bench.text(name);
        assert_eq!(read(&files, json!({"path": path})).await.as_deref(), Ok("text"), "{name}");
        write(&files, &path, "text").await.unwrap();
    }
    for name in ["another/beside", "by-link/../beside", "outside/real/nested/../beside", "another/nothing"] {
        let path = bench.text(name);
        assert_eq!(read(&files, json!({"path": path})).await, Err(outside(&path)));
    }
    // Made later, by whomever: not what the session was given.
    bench.link("missing", "outside");
    let path = bench.text("missing/secret");
    assert_eq!(read(&files, json!({"path": path})).await, Err(outside(&path)));
}

// SE-3: additional directories are roots like the first, of that session only
#[tokio::test]
async fn additional_directories_are_served() {
    let bench = Bench::new().await;
    let slots = FileSlots::default();
    let params =
        json!({"cwd": bench.path("cwd"), "additionalDirectories": [bench.path("outside"), "relative"]});
    let open = |params: serde_json::Value| {
        FilesSpec::of_session(params.to_string().as_bytes(), FileRules::default())
    };
    let with = Files::open(open(params), &slots).await;
    let without = Files::open(open(json!({"cwd": bench.path("cwd")})), &slots).await;
    let path = bench.text("outside/secret");
    assert_eq!(read(&with, json!({"path": path})).await.as_deref(), Ok("secret\n"));
    assert_eq!(read(&without, json!({"path": path})).await, Err(outside(&path)));
    write(&with, &bench.text("outside/new"), "new").await.unwrap();
    assert_eq!(bench.get("outside/new"), "new");
    let path = bench.text("more/new");
    assert_eq!(write(&with, &path, "new").await, Err(outside(&path)));
}

// contract 2.2: the agent's own directory is served beside the session's, if it exists, and nothing else of the home directory
// quirk file-outside
#[tokio::test]
async fn the_agents_own_directory_is_served() {
    let bench = Bench::new().await;
    std::fs::create_dir(bench.path("outside/.agent")).unwrap();
    let open = async |own: &str| {
        let rules = FileRules { agent_directory: Some(bench.path(own)), ..FileRules::default() };
        Files::open(FilesSpec { directories: vec![bench.path("cwd")], rules }, &FileSlots::default()).await
    };
    let files = open("outside/.agent").await;
    let plan = bench.text("outside/.agent/plans/one.md");
    write(&files, &plan, "a plan").await.unwrap();
    assert_eq!(read(&files, json!({"path": plan})).await.as_deref(), Ok("a plan"));
    let path = bench.text("outside/secret");
    assert_eq!(read(&files, json!({"path": path})).await, Err(outside(&path)));
    let files = open("outside/.none").await;
    let path = bench.text("outside/.none/plan");
    assert_eq!(write(&files, &path, "x").await, Err(outside(&path)));
    write(&files, &bench.text("cwd/file"), "text").await.unwrap();
}

// FS-1: a root is the directory it was, whatever its name comes to mean
#[tokio::test]
async fn a_root_that_is_moved_stays_the_root() {
    let bench = Bench::new().await;
    bench.put("cwd/file", "text");
    std::fs::rename(bench.path("cwd"), bench.path("moved")).unwrap();
    bench.link("cwd", "outside");
    assert_eq!(bench.read("cwd/file").await.as_deref(), Ok("text"));
    assert_eq!(reason(bench.read("cwd/secret").await).0, -32002);
    bench.write("cwd/new", "new").await.unwrap();
    assert_eq!(bench.get("moved/new"), "new");
    bench.assert_outside_is_untouched();
}

// FS-1: names that are not UTF-8 can stand in the way
#[tokio::test]
async fn names_need_not_be_utf8() {
    let bench = Bench::new().await;
    let odd = OsStr::from_bytes(b"odd\xff");
    std::fs::create_dir(bench.path("cwd").join(odd)).unwrap();
    std::fs::write(bench.path("cwd").join(odd).join("file"), "text").unwrap();
    bench.link("cwd/relative", odd);
    bench.link("cwd/absolute", bench.path("cwd").join(odd));
    bench.link("cwd/out", OsStr::from_bytes(b"../outside\xff"));
    for name in ["cwd/relative/file", "cwd/absolute/file"] {
        assert_eq!(bench.read(name).await.as_deref(), Ok("text"), "{name}");
        bench.write(name, "text").await.unwrap();
    }
    assert_eq!(bench.read("cwd/out").await, Err(bench.outside("cwd/out")));
}

// FS-1: the working directory may be the root of everything
#[tokio::test]
async fn the_root_directory_is_a_root() {
    let bench = linked(FileRules::default()).await;
    let spec = FilesSpec { directories: vec!["/".into()], rules: FileRules::default() };
    let files = Files::open(spec, &FileSlots::default()).await;
    let inside = ["cwd/out-chain", "cwd/round", "cwd/across-absolute"].map(|name| bench.text(name));
    for path in inside.into_iter().chain([format!("/../..{}", bench.text("cwd/out"))]) {
        assert!(read(&files, json!({"path": path})).await.is_ok(), "{path}");
    }
    assert_eq!(reason(read(&files, json!({"path": "/"})).await), (-32602, "directory".to_owned()));
    assert_eq!(reason(write(&files, "/..", "x").await), (-32602, "directory".to_owned()));
}
