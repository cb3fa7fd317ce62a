//! Generated homes of Hermes Agent: every step of its catalog, in every shape that people write.
//!
//! The same seed gives the same homes. [`SHAPES`] are the ways in which the value that a step acts on can
//! stand in a file; a home holds one *subject* (a step in a shape) and other steps' values around it.

use std::collections::BTreeMap;

use fleet_update::migrate::MemoryHome;

/// A small generator of numbers (xorshift64*): the same seed gives the same run on every machine.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from((self.next() >> 11) % limit as u64).unwrap()
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    pub fn chance(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shape {
    OldDefault,
    UserValue,
    Absent,
    NullSection,
    Scalar,
    Alias,
    Flow,
}

pub const SHAPES: [Shape; 7] = [
    Shape::OldDefault,
    Shape::UserValue,
    Shape::Absent,
    Shape::NullSection,
    Shape::Scalar,
    Shape::Alias,
    Shape::Flow,
];

/// The shapes that may end a home altogether: they stand in no home beside others.
const ENDING: [Shape; 2] = [Shape::Scalar, Shape::Alias];

/// What a step acts on: the section, the lines that it changes, the lines that it must leave alone.
struct Subject {
    step: u32,
    section: &'static str,
    old: &'static [&'static str],
    user: &'static [&'static str],
}

const SUBJECTS: &[Subject] = &[
    Subject {
        step: 12,
        section: "custom_providers",
        old: &[
            r#"[{name: My (Own) LLM, base_url: "https://llm.example.com/v1", model: m1, api_mode: openai, api_key: no-key}]"#,
            r#"[{base_url: "http://Local.Host:8080/v1", models: [a, {id: b, context: 5}], rate_limit_delay: 0.5}, {name: x}, {name: a, url: "https://a.example", extra_headers: {X-A: 1}, discover_models: true}]"#,
            r#"[{name: "2070", api: "${BASE}/v1", apiKey: "${KEY}", ssl_verify: false, unknown: 1, contextLength: 4096}]"#,
            r#"[{name: A B, url: "https://a/v1"}, {name: a  b, url: "https://b/v1", models: {x: {k: 1}}}]"#,
        ],
        user: &[
            "[]",
            "[{name: no address}]",
            "[{name: x, base_url: not-a-url}]",
            "[5]",
        ],
    },
    Subject {
        step: 13,
        section: ".env",
        old: &[
            "LLM_MODEL=gpt-4",
            "OPENAI_MODEL='x y'",
            "LLM_MODEL=a\nOPENAI_MODEL=b",
        ],
        user: &["MODEL=x", "MY_LLM_MODEL=x", "#LLM_MODEL=x", "LLM_MODEL="],
    },
    Subject {
        step: 14,
        section: "stt",
        old: &[
            "model: whisper-1",
            "model: large-v3",
            "provider: groq\nmodel: whisper-large-v3",
            "provider: openai\nmodel: whisper-1",
            "provider: local_command\nmodel: tiny",
        ],
        user: &["provider: openai\nopenai: {model: mine}", "enabled: false"],
    },
    Subject {
        step: 16,
        section: "display",
        old: &[
            "tool_progress_overrides: {telegram: verbose, slack: off}",
            "tool_progress_overrides: {cli: all}\nplatforms: {cli: {streaming: true}}",
        ],
        user: &[
            "platforms: {cli: {tool_progress: new}}",
            "tool_progress_overrides: {}",
            "tool_progress_overrides: {cli: all}\nplatforms: {cli: {tool_progress: new}}",
        ],
    },
    Subject {
        step: 17,
        section: "compression",
        old: &[
            "summary_model: google/gemini",
            "summary_model: ' m '\nsummary_provider: nous\nsummary_base_url: https://x",
            "summary_provider: auto\nthreshold: 0.5",
            "summary_model: ''",
        ],
        user: &["threshold: 0.7", "enabled: false"],
    },
    Subject {
        step: 21,
        section: "plugins",
        old: &["disabled: [off-one]", "disabled: []"],
        user: &["enabled: [mine]", "enabled: []", "enabled: null"],
    },
    Subject {
        step: 23,
        section: "curator",
        old: &["enabled: true"],
        user: &["enabled: false"],
    },
    Subject {
        step: 25,
        section: "model_catalog",
        old: &["ttl_hours: 24", "ttl_hours: 24.0"],
        user: &["ttl_hours: 12", "ttl_hours: '24'", "ttl_hours: null"],
    },
    Subject {
        step: 29,
        section: "memory",
        old: &[
            "write_mode: approve",
            "write_mode: on",
            "write_mode: ' APPROVE '",
            "write_mode: off\nwrite_approval: true",
        ],
        user: &["write_approval: true", "memory_char_limit: 100"],
    },
    Subject {
        step: 29,
        section: "skills",
        old: &["write_mode: approve", "write_mode: 'off'"],
        user: &["write_approval: false"],
    },
    Subject {
        step: 31,
        section: "agent",
        old: &["verify_on_stop: auto", "verify_on_stop: ' Auto'"],
        user: &["verify_on_stop: false", "verify_on_stop: 'yes'"],
    },
    Subject {
        step: 32,
        section: "agent",
        old: &["verify_on_stop: true", "verify_on_stop: on"],
        user: &["verify_on_stop: 'true'", "verify_on_stop: 1"],
    },
    Subject {
        step: 33,
        section: "delegation",
        old: &[
            "max_async_children: 8",
            "max_async_children: 5\nmax_concurrent_children: 7",
            "max_async_children: 2",
            "max_async_children: '6'",
            "max_async_children: x",
            "max_async_children: 10",
        ],
        user: &["max_concurrent_children: 5"],
    },
    Subject {
        step: 34,
        section: "display",
        old: &["personality: pirate", "personality: Mine"],
        user: &["personality: none", "personality: ''", "skin: x"],
    },
    Subject {
        step: 34,
        section: "agent",
        old: &[
            "system_prompt: You are a helpful, friendly AI assistant.",
            "personalities: {bro: {system_prompt: Be chill., tone: calm}}\nsystem_prompt: \"Be chill.\\nTone: calm\"",
            "personalities: {bro: [a, b]}\nsystem_prompt: [a, b]",
        ],
        user: &[
            "system_prompt: Speak as I do.",
            "system_prompt: ''",
            "personalities: {helpful: other}\nsystem_prompt: You are a helpful, friendly AI assistant.",
        ],
    },
    Subject {
        step: 35,
        section: "display",
        old: &[
            "background_process_notifications: all",
            "background_process_notifications: ' ALL '",
        ],
        user: &[
            "background_process_notifications: result",
            "background_process_notifications: off",
        ],
    },
    Subject {
        step: 36,
        section: "delegation",
        old: &["max_iterations: 50"],
        user: &["max_iterations: 60", "max_iterations: '50'"],
    },
    Subject {
        step: 37,
        section: "delegation",
        old: &["max_concurrent_children: 3"],
        user: &["max_concurrent_children: 4"],
    },
    Subject {
        step: 38,
        section: "plugins",
        old: &[
            "enabled: [a, nemo_relay]",
            "enabled: [observability/nemo_relay, nemo_relay]",
            "enabled: [nemo_relay, b, nemo_relay]",
        ],
        user: &[
            "enabled: [a]",
            "enabled: [nemo_relay2]",
            "enabled: nemo_relay",
        ],
    },
    Subject {
        step: 39,
        section: "platform_toolsets",
        old: &["cli: [hermes-cli, bfl]", "slack: [bfl]\ncli: [hermes-cli]"],
        user: &["cli: [hermes-cli]", "cli: bfl"],
    },
    Subject {
        step: 39,
        section: "known_builtin_toolsets",
        old: &["cli: [web, bfl, file]"],
        user: &["cli: [web]"],
    },
    Subject {
        step: 40,
        section: "model_catalog",
        old: &["ttl_hours: 1", "ttl_hours: 1.0"],
        user: &[
            "ttl_hours: 1\nttl_minutes: 5",
            "ttl_hours: 2",
            "ttl_minutes: 30",
        ],
    },
    Subject {
        step: 41,
        section: "SOUL.md",
        old: &[
            "# Me\n\nKind.\n\n## Messaging other agents\n\nOld.\n\n## Rules\nx\n",
            "Kind.\n\n## Messaging other agents\nOld.\n### Roster\n- a\n",
        ],
        user: &["# Me\n\nKind.\n", "Kind.\n## Other\nx\n"],
    },
    Subject {
        step: 42,
        section: "cron",
        old: &[
            "model_drift_guard: true",
            "model_drift_guard: false\nwrap_response: false",
        ],
        user: &["model_drift_guard: null", "wrap_response: true"],
    },
    Subject {
        step: 43,
        section: "gateway",
        old: &[
            "multiplex_profile_allowlist: [a, b]",
            "multiplex_profile_allowlist: null\nmultiplex_profiles: true",
        ],
        user: &["multiplex_profiles: false"],
    },
    Subject {
        step: 44,
        section: "curator",
        old: &[
            "stale_after_days: 30",
            "archive_after_days: 90\nstale_after_days: 30",
        ],
        user: &["stale_after_days: 29", "archive_after_days: 91"],
    },
    Subject {
        step: 45,
        section: "platform_toolsets",
        old: &[
            "cli: [web, file]",
            "cli: [terminal, hermes-cli]\nslack: [hermes-slack]",
        ],
        user: &["cli: [hermes-cli]", "cli: [web, connections]", "cli: []"],
    },
    Subject {
        step: 46,
        section: "mcp_servers",
        old: &[
            "a: {command: x, disabled: true}",
            "a: {disabled: 'yes', enabled: true}\nb: {disabled: false}",
            "a: {disabled: 1}",
        ],
        user: &[
            "a: {enabled: true}",
            "a: {disabled: false}",
            "a: {disabled: maybe}",
        ],
    },
    Subject {
        step: 47,
        section: "compression",
        old: &["threshold_tokens: 256000"],
        user: &["threshold_tokens: 128000", "threshold_tokens: null"],
    },
    Subject {
        step: 48,
        section: "terminal",
        old: &[
            "docker_image: nikolaik/python-nodejs:python3.11-nodejs20",
            "modal_image: nikolaik/python-nodejs:python3.14-nodejs22\nsingularity_image: docker://nikolaik/python-nodejs:python3.11-nodejs20",
        ],
        user: &[
            "docker_image: mine:1",
            "singularity_image: nikolaik/python-nodejs:python3.11-nodejs20",
        ],
    },
    Subject {
        step: 49,
        section: "terminal",
        old: &["vercel_runtime: node24"],
        user: &["vercel_runtime: node22"],
    },
    Subject {
        step: 50,
        section: "security",
        old: &[
            "tirith_enabled: true\ntirith_path: tirith",
            "tirith_timeout: 5\nredact_secrets: true",
            "tirith_fail_open: false",
        ],
        user: &["redact_secrets: false"],
    },
];

/// A generated home.
pub struct Generated {
    pub home: MemoryHome,
    /// The version that its file has.
    pub from: Option<u32>,
    /// The version that it is migrated to.
    pub to: u32,
    /// The shape of the value that it was made for.
    pub shape: Shape,
    /// The steps that act on it, each in the shape that it finds.
    pub subjects: Vec<(u32, Shape)>,
}

/// How a section is written.
struct Section {
    shape: Shape,
    lines: Vec<String>,
}

/// The steps that a file without a version gets.
const LEGACY: [u32; 12] = [12, 14, 16, 17, 29, 33, 38, 39, 42, 43, 46, 50];

/// The steps that homes are made for on the way to a version.
pub fn steps(to: u32) -> std::collections::BTreeSet<u32> {
    let fitting = SUBJECTS.iter().filter(|subject| fits(subject, to));
    fitting.map(|subject| subject.step).collect()
}

/// Whether a subject can be compared on the way to a version: 0.19 takes a file without a version for an old
/// one, so step 12 cannot be compared with it.
fn fits(subject: &Subject, to: u32) -> bool {
    subject.step <= to && (subject.step > 12 || to > 33)
}

/// Whether a step is applied to a file of this version, on the way to `to`.
fn applies(step: u32, from: Option<u32>, to: u32) -> bool {
    step <= to && from.map_or(LEGACY.contains(&step), |from| from < step)
}

/// Makes homes on the way to one version; what was seldom made comes next.
pub struct Generator {
    random: Random,
    to: u32,
    seen: BTreeMap<(u32, Shape), usize>,
    starts: BTreeMap<Option<u32>, usize>,
}

impl Generator {
    pub fn new(seed: u64, to: u32) -> Self {
        Self {
            random: Random::new(seed),
            to,
            seen: BTreeMap::new(),
            starts: BTreeMap::new(),
        }
    }

    pub fn next(&mut self) -> Generated {
        let fitting: Vec<&'static Subject> = SUBJECTS
            .iter()
            .filter(|subject| fits(subject, self.to))
            .collect();
        let (main, shape) = self.rarest(&fitting, &SHAPES);
        let from = self.start(main.step);
        let mut sections = BTreeMap::new();
        let mut subjects = Vec::new();
        if add(&mut self.random, &mut sections, main, shape) {
            subjects.push((main.step, shape));
        }
        let shared: Vec<Shape> = SHAPES
            .into_iter()
            .filter(|shape| !ENDING.contains(shape))
            .collect();
        let beside: Vec<&'static Subject> = fitting
            .into_iter()
            .filter(|subject| applies(subject.step, from, self.to))
            .filter(|subject| subject.section != main.section || shape == Shape::OldDefault)
            .collect();
        for turn in 0..self.random.below(8) {
            if beside.is_empty() {
                break;
            }
            let (other, shape) = match turn % 2 {
                0 => self.rarest(&beside, &shared),
                _ => (*self.random.pick(&beside), *self.random.pick(&shared)),
            };
            if add(&mut self.random, &mut sections, other, shape) {
                subjects.push((other.step, shape));
            }
        }
        subjects.retain(|(step, _)| applies(*step, from, self.to));
        for subject in &subjects {
            *self.seen.entry(*subject).or_default() += 1;
        }
        *self.starts.entry(from).or_default() += 1;
        let home = write(&mut self.random, &sections, from);
        Generated {
            home,
            from,
            to: self.to,
            shape,
            subjects,
        }
    }

    /// What was made the fewest times, by chance among equals.
    fn rarest(
        &mut self,
        subjects: &[&'static Subject],
        shapes: &[Shape],
    ) -> (&'static Subject, Shape) {
        let pairs = subjects
            .iter()
            .flat_map(|subject| shapes.iter().map(|shape| (*subject, *shape)));
        let count = |pair: &(&'static Subject, Shape)| {
            self.seen.get(&(pair.0.step, pair.1)).copied().unwrap_or(0)
        };
        let fewest = pairs.clone().map(|pair| count(&pair)).min().unwrap();
        let rare: Vec<_> = pairs.filter(|pair| count(pair) == fewest).collect();
        *self.random.pick(&rare)
    }

    /// A version below `step`: the one that the fewest homes started from, or any.
    fn start(&mut self, step: u32) -> Option<u32> {
        if step == 12 || (self.to > 33 && LEGACY.contains(&step) && self.random.chance(5)) {
            return None;
        }
        let rare =
            (12..step).min_by_key(|start| self.starts.get(&Some(*start)).copied().unwrap_or(0));
        let any = 12 + u32::try_from(self.random.below((step - 12) as usize)).unwrap();
        Some(rare.filter(|_| self.random.chance(2)).unwrap_or(any))
    }
}

/// Adds a subject, unless its keys are there already.
fn add(
    random: &mut Random,
    sections: &mut BTreeMap<&'static str, Section>,
    subject: &'static Subject,
    shape: Shape,
) -> bool {
    let text = match shape {
        Shape::UserValue => *random.pick(subject.user),
        Shape::Absent => "",
        _ => *random.pick(subject.old),
    };
    let lines: Vec<String> = match subject.section {
        "custom_providers" | ".env" | "SOUL.md" => vec![text.to_owned()],
        _ => text.lines().map(str::to_owned).collect(),
    };
    match sections.get_mut(subject.section) {
        None => {
            sections.insert(subject.section, Section { shape, lines });
            true
        }
        Some(section) => {
            let key = |line: &String| line.split(':').next().unwrap_or_default().to_owned();
            let single = matches!(subject.section, "custom_providers" | ".env" | "SOUL.md");
            let fits = !matches!(
                section.shape,
                Shape::NullSection | Shape::Scalar | Shape::Alias | Shape::Absent
            ) && !single
                && shape != Shape::Absent
                && !lines
                    .iter()
                    .any(|line| section.lines.iter().any(|own| key(own) == key(line)));
            if fits {
                section.lines.extend(lines);
            }
            fits
        }
    }
}

fn write(random: &mut Random, sections: &BTreeMap<&str, Section>, from: Option<u32>) -> MemoryHome {
    let mut home = MemoryHome::default();
    let mut text = String::from("# a home\n");
    if let Some(from) = from {
        text += &match random.below(6) {
            0 => format!("_config_version: \"{from}\"\n"),
            1 => format!("_config_version: {from}.0  # float\n"),
            _ => format!("_config_version: {from}\n"),
        };
    }
    text += "model:\n  default: m\n\n";
    for (name, section) in sections {
        match *name {
            ".env" => env_file(&mut home, section),
            "SOUL.md" => soul_file(&mut home, section),
            name => yaml_section(random, &mut text, name, section),
        }
    }
    if random.chance(2) {
        text += "# the end\nskin_of_mine: {a: 1}\n";
    }
    if random.chance(3) {
        for (folder, manifest) in [
            ("b-dir", "name: bee\n"),
            ("a-dir", "version: 1\n"),
            ("c", "name: off-one\n"),
        ] {
            home.files
                .insert(format!("plugins/{folder}/plugin.yaml"), manifest.into());
        }
    }
    home.files.insert("config.yaml".into(), text.into_bytes());
    home
}

fn env_file(home: &mut MemoryHome, section: &Section) {
    let lines = section.lines.join("\n");
    let text = match section.shape {
        Shape::Absent => return,
        Shape::NullSection => "LLM_MODEL=\nOPENAI_MODEL=\n".to_owned(),
        Shape::Scalar => "no assignment\n".to_owned(),
        Shape::Alias => lines
            .lines()
            .map(|line| format!("export {line}\n"))
            .collect(),
        Shape::Flow => format!("# keys\nA_KEY=1\n{lines}"),
        Shape::OldDefault | Shape::UserValue => format!("{lines}\nB_KEY=\"x y\"\n"),
    };
    home.files.insert(".env".into(), text.into_bytes());
}

fn soul_file(home: &mut MemoryHome, section: &Section) {
    let text = match section.shape {
        Shape::Absent => return,
        Shape::NullSection => String::from("\n"),
        Shape::Scalar => "## Messaging\nmine\n".to_owned(),
        Shape::Flow => format!("# Top\n\n{}", section.lines[0]),
        _ => section.lines[0].clone(),
    };
    home.files.insert("SOUL.md".into(), text.into_bytes());
}

fn yaml_section(random: &mut Random, text: &mut String, name: &str, section: &Section) {
    let list = name == "custom_providers";
    let flow = || match list {
        true => section.lines[0].clone(),
        false => format!("{{{}}}", section.lines.join(", ")),
    };
    match section.shape {
        Shape::Absent => *text += "# nothing here\n",
        Shape::NullSection => *text += &format!("{name}:\n"),
        Shape::Scalar => *text += &format!("{name}: 5\n"),
        Shape::Alias if list || random.chance(2) => {
            *text += &format!("base_{name}: &b_{name} {}\n{name}: *b_{name}\n", flow());
        }
        Shape::Alias => {
            *text += &format!(
                "base_{name}: &b_{name} {}\n{name}:\n  <<: *b_{name}\n  own: 1\n",
                flow()
            )
        }
        Shape::Flow => *text += &format!("{name}: {}  # flow\n", flow()),
        Shape::OldDefault | Shape::UserValue if list => *text += &format!("{name}: {}\n", flow()),
        Shape::OldDefault | Shape::UserValue => {
            *text += &format!("# about {name}\n{name}:\n");
            for line in &section.lines {
                *text += &format!("  # before\n  {line}  # beside\n");
            }
            if random.chance(2) {
                *text += "  own: yes\n";
            }
        }
    }
}
