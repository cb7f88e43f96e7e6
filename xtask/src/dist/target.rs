//! The targets that packages are made for, and what each kind of package calls them.

/// A target.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) triple: &'static str,
    /// `e_machine` of its programs.
    pub(super) machine: u16,
    pub(super) debian: &'static str,
    /// Both for `cpu` of a package, and in its name.
    pub(super) npm: &'static str,
    pub(super) wheel: &'static str,
}

/// The first is the one that is meant where none is named.
pub(super) const ALL: [Target; 2] = [
    Target { triple: "x86_64-unknown-linux-gnu", machine: 62, debian: "amd64", npm: "x64", wheel: "x86_64" },
    Target {
        triple: "aarch64-unknown-linux-gnu",
        machine: 183,
        debian: "arm64",
        npm: "arm64",
        wheel: "aarch64",
    },
];

/// The target of this name.
pub(super) fn parse(triple: &str) -> Result<&'static Target, String> {
    let names = ALL.each_ref().map(|target| target.triple).join(", ");
    let found = ALL.iter().find(|target| target.triple == triple);
    found.ok_or_else(|| format!("there are packages for these only: {names}"))
}

impl Target {
    /// Whether its programs run here.
    pub(super) fn is_here(&self) -> bool {
        cfg!(target_os = "linux") && self.triple.starts_with(std::env::consts::ARCH)
    }
}
