//! Packs the OpenAPI document: it would be 200 KB of the program, and few ask for it.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::error::Error;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=openapi.json");
    let place = std::env::var_os("OUT_DIR").ok_or("cargo gives build scripts an OUT_DIR")?;
    let mut packed =
        GzEncoder::new(File::create(Path::new(&place).join("openapi.json.gz"))?, Compression::best());
    packed.write_all(&fs::read("openapi.json")?)?;
    packed.finish()?;
    Ok(())
}
