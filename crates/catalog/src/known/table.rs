//! The table. What is said here of an agent was seen in its package, in its documentation or in its traffic; docs/agents.md has
//! the versions.
//!
//! Where two have a program of the same name, the first is meant unless the program's package says otherwise.

use super::{Companion, Habits, Known, Login, Package, Place, Wanted};

const fn home(below_home: &'static str, file: &'static str) -> Place {
    Place { variable: None, below_home, file }
}

const fn place(variable: &'static str, below_home: &'static str, file: &'static str) -> Place {
    Place { variable: Some(variable), below_home, file }
}

const fn keeps(own_directory: Place) -> Habits {
    Habits { own_directory: Some(own_directory), ..Habits::DEFAULT }
}

const VERSION: &[&str] = &["--version"];

const CLAUDE_LOGIN: Login = Login {
    variables: &[
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_VERTEX",
        "CLAUDE_CODE_USE_FOUNDRY",
    ],
    files: &[place("CLAUDE_CONFIG_DIR", ".claude", ".credentials.json")],
    elsewhere: Some(&[place("CLAUDE_CONFIG_DIR", ".claude", "settings.json")]),
    in_keychain: true,
    command: &["claude", "/login"],
};

// It puts a link in the place of what is embedded, and that behind the user's words.
const CLAUDE_HABITS: Habits =
    Habits { moves_resources: true, ..keeps(place("CLAUDE_CONFIG_DIR", ".claude", "")) };

const CODEX_LOGIN: Login = Login {
    variables: &["CODEX_API_KEY", "OPENAI_API_KEY"],
    files: &[place("CODEX_HOME", ".codex", "auth.json")],
    elsewhere: Some(&[place("CODEX_HOME", ".codex", "config.toml")]),
    in_keychain: false,
    command: &["codex", "login"],
};

/// The known agents, in the order in which they are listed.
pub const KNOWN: &[Known] = &[
    Known {
        name: "opencode",
        title: "OpenCode",
        also: &["opencode-ai"],
        program: "opencode",
        args: &["acp"],
        // An agent that changes itself below a running session is not the one that was checked.
        env: &[("OPENCODE_DISABLE_AUTOUPDATE", "1")],
        package: Package::Npm("opencode-ai"),
        companion: None,
        version_args: VERSION,
        wanted: Wanted::DEFAULT,
        habits: keeps(place("XDG_DATA_HOME", ".local/share", "opencode")),
        login: Login {
            variables: &[],
            files: &[place("XDG_DATA_HOME", ".local/share", "opencode/auth.json")],
            // The variables of some hundred providers, and its own configuration.
            elsewhere: None,
            in_keychain: false,
            command: &["opencode", "auth", "login"],
        },
    },
    Known {
        name: "claude",
        title: "Claude",
        also: &["claude-agent-acp", "claude-acp", "claude-code", "claude-code-acp"],
        program: "claude-agent-acp",
        args: &[],
        env: &[],
        package: Package::Npm("@agentclientprotocol/claude-agent-acp"),
        companion: None,
        // It has none of its own, and takes the argument for Claude Code's.
        version_args: &[],
        wanted: Wanted::DEFAULT,
        habits: CLAUDE_HABITS,
        login: CLAUDE_LOGIN,
    },
    Known {
        name: "claude-zed",
        title: "Claude (the adapter of Zed)",
        also: &[],
        program: "claude-agent-acp",
        args: &[],
        env: &[],
        package: Package::Npm("@zed-industries/claude-agent-acp"),
        companion: None,
        version_args: &[],
        wanted: Wanted::DEFAULT,
        habits: CLAUDE_HABITS,
        login: CLAUDE_LOGIN,
    },
    Known {
        name: "codex",
        title: "Codex",
        also: &["codex-acp", "codex-cli"],
        program: "codex-acp",
        args: &[],
        env: &[],
        package: Package::Npm("@agentclientprotocol/codex-acp"),
        companion: None,
        version_args: VERSION,
        wanted: Wanted::DEFAULT,
        habits: keeps(place("CODEX_HOME", ".codex", "")),
        login: CODEX_LOGIN,
    },
    Known {
        name: "codex-zed",
        title: "Codex (the adapter of Zed)",
        also: &[],
        program: "codex-acp",
        args: &[],
        env: &[],
        package: Package::Npm("@zed-industries/codex-acp"),
        companion: None,
        version_args: VERSION,
        wanted: Wanted::DEFAULT,
        habits: keeps(place("CODEX_HOME", ".codex", "")),
        login: CODEX_LOGIN,
    },
    Known {
        name: "gemini",
        title: "Gemini CLI",
        also: &["gemini-cli"],
        program: "gemini",
        args: &["--acp"],
        env: &[],
        package: Package::Npm("@google/gemini-cli"),
        companion: None,
        version_args: VERSION,
        // With files of the host it can make no new one.
        wanted: Wanted { files: false, ..Wanted::DEFAULT },
        // The user's words then come glued to the reference, and an old request last.
        habits: Habits { moves_resources: true, ..Habits::DEFAULT },
        login: Login {
            variables: &[
                "GEMINI_API_KEY",
                "GOOGLE_API_KEY",
                "GOOGLE_GENAI_USE_VERTEXAI",
                "GOOGLE_GENAI_USE_GCA",
            ],
            files: &[
                place("GEMINI_CLI_HOME", "", ".gemini/oauth_creds.json"),
                place("GEMINI_CLI_HOME", "", ".gemini/gemini-credentials.json"),
            ],
            // A keyring, which it has told of in its settings.
            elsewhere: Some(&[
                place("GEMINI_CLI_HOME", "", ".gemini/settings.json"),
                place("GEMINI_CLI_HOME", "", ".gemini/.env"),
                home("", ".env"),
            ]),
            in_keychain: true,
            command: &["gemini"],
        },
    },
    Known {
        name: "qwen",
        title: "Qwen Code",
        also: &["qwen-code"],
        program: "qwen",
        args: &["--acp"],
        env: &[],
        package: Package::Npm("@qwen-code/qwen-code"),
        companion: None,
        version_args: VERSION,
        wanted: Wanted::DEFAULT,
        habits: keeps(place("QWEN_HOME", ".qwen", "")),
        login: Login {
            variables: &["OPENAI_API_KEY"],
            files: &[place("QWEN_HOME", ".qwen", "oauth_creds.json")],
            elsewhere: Some(&[
                place("QWEN_HOME", ".qwen", "settings.json"),
                place("QWEN_HOME", ".qwen", ".env"),
                home("", ".env"),
            ]),
            in_keychain: false,
            command: &["qwen"],
        },
    },
    Known {
        name: "kimi",
        title: "Kimi Code",
        also: &["kimi-code", "kimi-cli"],
        program: "kimi",
        args: &["acp"],
        env: &[],
        package: Package::Npm("@moonshot-ai/kimi-code"),
        companion: None,
        version_args: VERSION,
        wanted: Wanted::DEFAULT,
        habits: keeps(place("KIMI_CODE_HOME", ".kimi-code", "")),
        login: Login {
            variables: &["KIMI_API_KEY"],
            files: &[place("KIMI_CODE_HOME", ".kimi-code", "credentials/kimi-code.json")],
            elsewhere: Some(&[
                place("KIMI_CODE_HOME", ".kimi-code", "credentials"),
                place("KIMI_CODE_HOME", ".kimi-code", "config.toml"),
                // The directory of the older Kimi CLI.
                place("KIMI_SHARE_DIR", ".kimi", ""),
            ]),
            in_keychain: false,
            command: &["kimi", "login"],
        },
    },
    Known {
        name: "vibe",
        title: "Mistral Vibe",
        also: &["mistral-vibe", "vibe-acp"],
        program: "vibe-acp",
        args: &[],
        env: &[],
        package: Package::Pypi { name: "mistral-vibe", extras: &[], python: ">=3.12" },
        companion: None,
        version_args: VERSION,
        wanted: Wanted::DEFAULT,
        habits: keeps(place("VIBE_HOME", ".vibe", "")),
        login: Login {
            variables: &["MISTRAL_API_KEY"],
            files: &[],
            // A keyring, which only an onboarding fills.
            elsewhere: Some(&[place("VIBE_HOME", ".vibe", "")]),
            in_keychain: false,
            command: &["vibe", "--setup"],
        },
    },
    Known {
        name: "fast-agent",
        title: "fast-agent",
        also: &["fast", "fast-agent-acp", "fast-agent-mcp"],
        program: "fast-agent-acp",
        args: &[],
        env: &[],
        package: Package::Pypi { name: "fast-agent-acp", extras: &[], python: ">=3.12" },
        companion: None,
        version_args: VERSION,
        wanted: Wanted::DEFAULT,
        habits: Habits::DEFAULT,
        login: Login {
            variables: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY"],
            files: &[],
            elsewhere: None,
            in_keychain: false,
            command: &["fast-agent", "setup"],
        },
    },
    Known {
        name: "pi",
        title: "pi",
        also: &["pi-acp", "pi-coding-agent"],
        program: "pi-acp",
        args: &[],
        env: &[],
        package: Package::Npm("pi-acp"),
        companion: Some(Companion {
            program: "pi",
            package: Package::Npm("@earendil-works/pi-coding-agent"),
            variable: "PI_ACP_PI_COMMAND",
        }),
        // It takes no arguments but that of its login, and waits for a client.
        version_args: &[],
        wanted: Wanted::DEFAULT,
        habits: keeps(place("PI_CODING_AGENT_DIR", ".pi/agent", "")),
        login: Login {
            variables: &[
                "ANTHROPIC_API_KEY",
                "ANTHROPIC_OAUTH_TOKEN",
                "OPENAI_API_KEY",
                "GEMINI_API_KEY",
                "MISTRAL_API_KEY",
                "OPENROUTER_API_KEY",
            ],
            files: &[place("PI_CODING_AGENT_DIR", ".pi/agent", "auth.json")],
            elsewhere: None,
            in_keychain: false,
            command: &["pi"],
        },
    },
    Known {
        name: "copilot",
        title: "GitHub Copilot CLI",
        also: &["github-copilot", "github-copilot-cli", "copilot-cli"],
        program: "copilot",
        args: &["--acp"],
        env: &[],
        package: Package::Npm("@github/copilot"),
        companion: None,
        version_args: VERSION,
        wanted: Wanted::DEFAULT,
        habits: keeps(place("COPILOT_HOME", ".copilot", "")),
        login: Login {
            variables: &["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"],
            files: &[],
            // A keyring, its own configuration, and the login of gh.
            elsewhere: Some(&[
                place("COPILOT_HOME", ".copilot", ""),
                place("XDG_CONFIG_HOME", ".config", "gh/hosts.yml"),
            ]),
            in_keychain: true,
            command: &["copilot", "login"],
        },
    },
    Known {
        name: "cline",
        title: "Cline",
        also: &["cline-cli"],
        program: "cline",
        args: &["--acp"],
        env: &[],
        package: Package::Npm("cline"),
        companion: None,
        version_args: VERSION,
        wanted: Wanted::DEFAULT,
        habits: keeps(place("CLINE_DIR", ".cline", "")),
        login: Login {
            variables: &["CLINE_API_KEY"],
            files: &[],
            elsewhere: Some(&[place("CLINE_DIR", ".cline", ""), place("CLINE_DATA_DIR", ".cline", "")]),
            in_keychain: false,
            command: &["cline", "auth"],
        },
    },
    Known {
        name: "hermes",
        title: "Hermes",
        also: &["hermes-agent", "hermes-acp"],
        program: "hermes-acp",
        args: &[],
        env: &[],
        package: Package::Pypi { name: "hermes-agent", extras: &["acp"], python: ">=3.11,<3.14" },
        companion: None,
        version_args: VERSION,
        wanted: Wanted { stderr_log: true, ..Wanted::DEFAULT },
        habits: keeps(place("HERMES_HOME", ".hermes", "")),
        login: Login {
            variables: &["OPENROUTER_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"],
            files: &[place("HERMES_HOME", ".hermes", "auth.json")],
            elsewhere: None,
            in_keychain: false,
            command: &["hermes", "setup"],
        },
    },
];
