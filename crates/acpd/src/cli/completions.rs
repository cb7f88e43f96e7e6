//! `acpd completions`, and what a shell is told to have acpd complete its own command line.
//!
//! The script of a shell only calls acpd again, which answers from its definitions (`crate::completing`): a script that a package
//! installed fits every later acpd. Not here: what is offered.

use clap::{Args, ValueEnum};
use clap_complete::env::{Bash, EnvCompleter, Fish, Zsh};
use std::io;

/// The variable by which a shell's script asks for words to offer; its value is the name of the shell.
pub(crate) const VARIABLE: &str = "ACPD_COMPLETE";

/// `acpd completions`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "\
Commands, options, their values and the names of configured agents are completed then. The package for \
Debian has these files.

For your user:
  acpd completions bash > ~/.local/share/bash-completion/completions/acpd
  acpd completions zsh > ~/.zfunc/_acpd       with fpath+=~/.zfunc before compinit
  acpd completions fish > ~/.config/fish/completions/acpd.fish

Examples:
  source <(acpd completions bash)             in this shell only; zsh does it the same way
  acpd completions fish | source")]
pub struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// A shell that can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// Bash, from 4.0 on
    Bash,
    /// Zsh
    Zsh,
    /// Fish, from 3.1 on
    Fish,
}

/// In the words of Bash: it takes `--option=VALUE` for three words, and completes the last of them.
const BASH_JOINED: &str = r#"
_acpd() {
    local words=() word last i
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        last=$((${#words[@]} - 1))
        if ((last > 0)) && [[ $word == = && ${words[last]} == --* || ${words[last]} == --*= ]]; then
            words[last]+=$word
        else
            words+=("$word")
        fi
    done
    last=$((${#words[@]} - 1))
    word=${words[last]}
    local COMP_WORDS=("${words[@]}") COMP_CWORD=$last
    if [[ $word == --*=* ]]; then
        _clap_complete_acpd acpd "$word"
        COMPREPLY=("${COMPREPLY[@]#*=}")
    else
        _clap_complete_acpd acpd "$2"
    fi
}
"#;
/// In the words of Zsh: a file that it loads when the first word is to be completed has to do that, too.
const ZSH_FIRST: &str = "
if [ \"$funcstack[1]\" = _acpd ]; then
    _clap_dynamic_completer_acpd \"$@\"
fi
";

impl Shell {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Bash, Self::Zsh, Self::Fish];

    /// How the shell's own completion finds the script of a command: the file's name.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Bash => "acpd",
            Self::Zsh => "_acpd",
            Self::Fish => "acpd.fish",
        }
    }

    /// What the shell has to read.
    ///
    /// # Errors
    /// None that a buffer in memory does not have.
    pub fn script(self) -> io::Result<String> {
        let shell: &dyn EnvCompleter = match self {
            Self::Bash => &Bash,
            Self::Zsh => &Zsh,
            Self::Fish => &Fish,
        };
        let mut script = Vec::new();
        shell.write_registration(VARIABLE, "acpd", "acpd", "acpd", &mut script)?;
        let mut script = String::from_utf8(script).map_err(io::Error::other)?.trim_start().to_owned();
        match self {
            Self::Bash => {
                script = script.replace("-F _clap_complete_acpd", "-F _acpd");
                script.insert_str(0, BASH_JOINED.trim_start());
            }
            Self::Zsh => script.push_str(ZSH_FIRST),
            Self::Fish => {}
        }
        Ok(script)
    }
}
