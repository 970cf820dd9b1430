//! Links the program for the board with its memory.

fn main() {
    println!("cargo:rerun-if-changed=memory.x");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "none") {
        let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        println!("cargo:rustc-link-search={folder}");
        for argument in ["--nmagic", "-Tlink.x", "-Tlink-rp.x"] {
            println!("cargo:rustc-link-arg-bins={argument}");
        }
    }
}
