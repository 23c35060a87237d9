//! Endpoint classes, the shell that they are read from, and the paths beside them.

use std::sync::LazyLock;

use proptest::prelude::*;

use crate::logs::endpoint::{EndpointArguments, Endpoints};
use crate::logs::path::normal_path;
use crate::logs::shell::Commands;
use crate::tests::log_builder::cases;

const SHIPPED: &str = include_str!("../../rules/endpoints.toml");
static ENDPOINTS: LazyLock<Endpoints> = LazyLock::new(Endpoints::shipped);

#[track_caller]
fn check_commands(classes: &[(&str, &str)]) {
    for (command, class) in classes {
        let input = EndpointArguments { command: Some(command), ..EndpointArguments::default() };
        assert_eq!(ENDPOINTS.class("Bash", input), *class, "{command:?}");
    }
}

#[track_caller]
fn check_urls(classes: &[(&str, &str)]) {
    for (url, class) in classes {
        let input = EndpointArguments { url: Some(url), ..EndpointArguments::default() };
        assert_eq!(ENDPOINTS.class("WebFetch", input), *class, "{url:?}");
    }
}

#[test]
fn the_published_classes_are_kept() {
    check_commands(&[
        ("", "bash_empty"),
        (" \n", "bash_empty"),
        ("A=1", "bash_unk"),
        ("/usr/bin/python x.py", "bash_path_exec"),
        ("~/bin/tool", "bash_path_exec"),
        ("./run.sh", "bash_path_exec"),
        ("../run.sh", "bash_path_exec"),
        ("# only a comment", "bash_comment"),
        ("$EDITOR file", "bash_shell_ctrl"),
        ("`which ls` -l", "bash_shell_ctrl"),
        ("[ -f x ] && echo yes", "bash_shell_ctrl"),
        ("[[ -f x ]]", "bash_shell_ctrl"),
        ("! grep -q x y", "bash_shell_ctrl"),
        ("a_program_with_a_long_name x", "bash_long_or_path"),
        ("target/debug/tool", "bash_long_or_path"),
        (r"C:\tools\tool.exe x", "bash_long_or_path"),
        ("git log", "git_log"),
        ("git", "git"),
        ("curl -s https://a.example", "curl"),
        ("wget x", "curl"),
        ("yq .a x.yaml", "jq"),
        ("podman ps", "docker"),
        ("terraform plan", "k8s_iac"),
        ("vitest run", "test_vitest"),
        ("cargo test", "build_cargo"),
        ("npm run build", "build_npm"),
        ("fd x", "fs_list"),
        ("tail -f log", "fs_read"),
        ("rg x src", "search"),
        ("python3 x.py", "exec_python3"),
        ("wc -l x", "textproc"),
        ("printf x", "echo"),
        ("mkdir -p x", "bash_mkdir"),
        ("cd x", "bash_cd"),
        ("ls | wc -l", "fs_list"),
        ("GIT status", "git_status"),
    ]);
}

#[test]
fn the_effective_command_counts() {
    check_commands(&[
        ("cd x && git log", "git_log"),
        ("git -C p log", "git_log"),
        ("A=1 git log", "git_log"),
        ("cd \"a b; c\"; export A=b && source .venv/bin/activate; set -e\npytest -q", "test_pytest"),
        ("sudo -u root A=1 docker ps", "docker"),
        ("time -p cargo build", "build_cargo"),
        ("env -u X A=1 B=2 node x.js", "exec_node"),
        ("timeout -s KILL 60 curl x", "curl"),
        ("timeout 60s sudo timeout 5 curl x", "curl"),
        ("nohup nice -n 5 make &", "bash_make"),
        ("(cd x && git log)", "git_log"),
        ("((cd x; { ls; }))", "fs_list"),
        ("{ ls; }", "fs_list"),
        ("# what it does\n\n  # more\nls", "fs_list"),
        ("A=$(git log)\nB=`ls`\nls", "fs_list"),
        ("A=(1 2 3); ls", "fs_list"),
        ("a+=1 b[2]=3 ls", "fs_list"),
        ("export A=$(cat <<'EOF'\nit's\nEOF\n)", "bash_export"),
        ("A=$(cat <<-'EOF'\nit's 1)\n\tEOF\n)\ngit status", "git_status"),
        ("A=$((1<<2))\nB=$(cat <<<x)\nls", "fs_list"),
        ("A=$(python3 -c 'x')$(seq $((1<<2)))$(node -p \"(1<<n)\")\nls", "fs_list"),
        ("sleep 5; echo '--- x ---'; gh pr view", "bash_gh"),
        ("strip() { sed s/a/b/; }\nls", "textproc"),
        ("sudo -i", "bash_sudo"),
        ("env", "bash_env"),
        ("timeout", "bash_timeout"),
        ("cd a; cd b", "bash_cd"),
        ("source x; cd b", "bash_source"),
        (". x", "bash_other"),
    ]);
}

#[test]
fn git_is_known_by_its_command() {
    check_commands(&[
        ("git --no-pager -c color.ui=never diff", "git_diff"),
        ("git --git-dir=x --work-tree y status", "git_status"),
        ("git.exe push", "git_push"),
        ("git \"log\"", "git_log"),
        ("git --version", "git"),
        ("git -C", "git"),
        ("git my-alias", "git"),
        ("git $COMMAND", "git"),
        ("gitk", "bash_other"),
    ]);
}

#[test]
fn no_word_of_the_user_becomes_part_of_a_class() {
    check_commands(&[
        ("acme-deploy prod", "bash_other"),
        ("git acme-release", "git"),
        ("foo=bar acme", "bash_other"),
        ("<in >out acme", "bash_other"),
        ("é", "bash_other"),
    ]);
    check_urls(&[("https://wiki.acme.example/x", "web_other"), ("http://10.1.2.3:8080/", "web_other")]);
}

#[test]
fn quotes_redirections_and_documents_are_no_commands() {
    check_commands(&[
        ("\"git\" 'log'", "git_log"),
        ("gi\"t\" l\\og", "git"),
        ("g\\\nit log", "git_log"),
        ("cd 'a && rm b' && ls", "fs_list"),
        ("cd \"$(dirname \"$(which \"x)\")\")\" && ls", "fs_list"),
        ("cd ${A:-\"}\"} && ls", "fs_list"),
        ("cd \"a\\\"; rm\" && ls", "fs_list"),
        ("> out 2>&1 ls", "fs_list"),
        ("2>/dev/null ls &> x", "fs_list"),
        ("cd x &>/dev/null && ls", "fs_list"),
        ("cd x >& y && ls", "fs_list"),
        ("cd <(git log; rm x) && ls", "fs_list"),
        ("cd x <<EOF\nrm y; it's\nEOF\nls", "fs_list"),
        ("cd x <<\\EOF\nrm y; it's\nEOF\nls", "fs_list"),
        ("cd x <<-\\EOF\nrm y\n\tEOF\nls", "fs_list"),
        ("cd x << E\\OF\nrm y\nEOF\nls", "fs_list"),
        ("cd x <<'\\EOF'\nrm y\n\\EOF\nls", "fs_list"),
        ("cd x <<-'A B' <<\"C\"\nrm\n\tA B\nrm\nC\nls", "fs_list"),
        ("cd x <<< 'rm y'; ls", "fs_list"),
        ("cat > x <<'EOF'\nrm y\nEOF", "fs_read"),
        ("cd x #; rm y\nls", "fs_list"),
        ("cd x#y; ls", "fs_list"),
        ("cd x & ls", "fs_list"),
        ("cd x || ls", "fs_list"),
        ("cd x;; ls", "fs_list"),
    ]);
}

#[test]
fn what_no_shell_would_take_has_a_class_all_the_same() {
    check_commands(&[
        ("'", "bash_unk"),
        ("\"", "bash_unk"),
        ("(", "bash_unk"),
        (")", "bash_unk"),
        ("&&", "bash_unk"),
        ("git 'log", "git_log"),
        ("ls $(", "fs_list"),
        ("ls \\", "fs_list"),
        ("cd x <<EOF", "bash_cd"),
        ("cd x <<EOF\nls", "bash_cd"),
        ("cd \"unclosed && ls", "bash_cd"),
    ]);
}

#[test]
fn a_fetch_is_known_by_its_public_host() {
    check_urls(&[
        ("", "web_empty"),
        ("  ", "web_empty"),
        ("ftp://github.com/x", "web_unk"),
        ("github.com/x", "web_unk"),
        ("https://github.com/a/b", "web_github.com"),
        ("HTTPS://GitHub.com", "web_github.com"),
        ("https://www.npmjs.com/package/x?y#z", "web_npmjs.com"),
        ("https://api.github.com/repos", "web_github.com"),
        ("https://docs.rs/serde", "web_docs.rs"),
        ("https://docs.anthropic.com/en", "web_anthropic.com"),
        ("https://raw.githubusercontent.com/a/b", "web_githubusercontent.com"),
        ("https://somebody.github.io/x", "web_github.io"),
        ("https://news.bbc.co.uk/1", "web_co.uk"),
        ("https://user:secret@github.com/x", "web_github.com"),
        ("https://github.com:443/x", "web_github.com:443"),
        ("https://github.com:x/x", "web_other"),
        ("http://localhost:3000/", "web_localhost:3000"),
        ("http://[::1]:3000/", "web_other"),
        ("https://", "web_other"),
        ("https://evilgithub.com", "web_other"),
        ("https://github.com.acme.example", "web_other"),
    ]);
}

#[test]
fn other_tools_are_their_own_endpoint() {
    let class = |tool| ENDPOINTS.class(tool, EndpointArguments::default()).into_owned();
    for (tool, expected) in [
        ("Read", "Read"),
        ("mcp__a__b", "mcp__a__b"),
        ("", "unknown"),
        ("WebSearch", "web_search"),
        ("Bash", "bash_empty"),
    ] {
        assert_eq!(class(tool), expected);
    }
}

#[test]
fn every_listed_word_has_a_class_of_its_own_making() {
    let error = |text: &str| Endpoints::parse(text, "words.toml").unwrap_err().message;
    let twice = SHIPPED.replace("jq = [\"jq\"", "jq = [\"jq\", \"curl\"");
    assert_eq!(error(&twice), "words.toml: `curl` is in two classes");
    assert!(error("hosts = 1").starts_with("words.toml:1: "));
    assert!(Endpoints::parse(SHIPPED, "rules/endpoints.toml").is_ok());
    let lists: toml_edit::DocumentMut = SHIPPED.parse().unwrap();
    // What can be passed over but not named would be reported as somebody's own program.
    for word in lists["passed_over"].as_array().unwrap().iter().filter_map(|word| word.as_str()) {
        let bare = ENDPOINTS
            .class("Bash", EndpointArguments { command: Some(word), ..EndpointArguments::default() })
            .into_owned();
        assert_eq!(bare == "bash_other", matches!(word, "." | ":"), "{word}: {bare}");
    }
    for host in lists["hosts"].as_array().unwrap().iter().filter_map(|host| host.as_str()) {
        assert!(host.matches('.').count() <= 1, "{host} has more labels than a class");
    }
}

#[test]
fn long_scripts_are_read_once() {
    let repeated = |text: &str| text.repeat(100_000 / text.len());
    for text in ["cd x\n", "$(", "\"$(", "(", "'", "\"", "cd <<A\n", "A=1 ", "\\", "`", "<", "${", "sudo ", "x() "] {
        let script = repeated(text);
        let input = EndpointArguments { command: Some(&script), url: Some(&script), output_mode: None };
        assert!(ENDPOINTS.class("Bash", input).starts_with("bash_"));
        assert_eq!(ENDPOINTS.class("WebFetch", input), "web_unk");
    }
}

#[test]
fn commands_are_words_without_quotes() {
    let words = |text: &str| Commands::of(text).map(|words| words.join("|")).collect::<Vec<_>>();
    assert_eq!(words("a 'b c' \"d e\" f\\ g; h\n\ni"), ["a|b c|d e|f g", "h", "i"]);
    assert_eq!(words("a $(b c) ${d} `e` \"x$(y)z\""), ["a|$|$|`|x$z"]);
    assert_eq!(words("a '' \"\" | b"), ["a||", "b"]);
    assert_eq!(words("a 2>b >>c <d e"), ["a|e"]);
    assert_eq!(words("a\\\n b"), ["a|b"]);
}

#[track_caller]
fn check_paths(cwd: Option<&str>, paths: &[(&str, &str)]) {
    for (path, expected) in paths {
        let normal = normal_path(path.as_bytes(), cwd.map(str::as_bytes));
        assert_eq!(String::from_utf8_lossy(&normal), *expected, "{path:?} in {cwd:?}");
    }
}

#[test]
fn a_path_has_one_spelling() {
    check_paths(
        None,
        &[
            ("./a", "a"),
            ("a//b", "a/b"),
            ("a/./b", "a/b"),
            ("a/b/../c", "a/c"),
            ("a/b/", "a/b"),
            ("a/..", "."),
            ("", "."),
            ("../../a", "../../a"),
            ("a/../../b", "../b"),
            ("/", "/"),
            ("//a", "/a"),
            ("/../a", "/a"),
            ("/a/../..", "/"),
            ("~/a/../b", "~/b"),
            ("a\\b", "a\\b"),
            ("/a\\b/..\\c", "/a\\b/..\\c"),
            (r"C:\a\b", "C:/a/b"),
            (r"c:\a/.\b\..\c\", "C:/a/c"),
            (r"C:\..\a", "C:/a"),
            (r"C:\", "C:/"),
            ("C:a", "C:a"),
            (r"\\host\share\.\a", r"\\host/share/a"),
        ],
    );
}

#[test]
fn a_relative_path_stands_in_the_working_directory() {
    check_paths(
        Some("/home/me/work"),
        &[
            ("a", "/home/me/work/a"),
            ("./a/", "/home/me/work/a"),
            ("../a", "/home/me/a"),
            ("../../../../a", "/a"),
            ("/a", "/a"),
            ("~/a", "~/a"),
            ("~", "~"),
            ("~user/a", "/home/me/work/~user/a"),
            ("", "/home/me/work"),
            (r"C:\a", "C:/a"),
            ("a\\b", "/home/me/work/a\\b"),
        ],
    );
    check_paths(Some(r"d:\work"), &[("a", "D:/work/a"), (r"src\..\b.rs", "D:/work/b.rs"), (r"..\..\x", "D:/x")]);
    check_paths(Some("work"), &[("a", "work/a"), ("/a", "/a")]);
    check_paths(Some(""), &[("a", "a")]);
    assert_eq!(normal_path(b"/\xFF//x", None), b"/\xFF/x");
}

#[test]
fn a_name_that_looks_like_a_root_keeps_its_dot() {
    for path in [r"./\\/C", "./a:/b", "./~/x", "./~"] {
        assert_eq!(normal_path(path.as_bytes(), None), path.as_bytes());
        let inside = normal_path(path.as_bytes(), Some(b"/w"));
        assert_eq!(inside, [b"/w", &path.as_bytes()[1..]].concat());
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn every_command_has_a_class_that_is_listed_or_coarse(
        command in prop_oneof![any::<String>(), "[a-z ;&|<>()'\"$`{}#\\\\\n=/.-]{0,40}"],
    ) {
        let class = ENDPOINTS.class("Bash", EndpointArguments { command: Some(&command), ..EndpointArguments::default() }).into_owned();
        let coarse = "bash_other bash_empty bash_unk bash_comment bash_shell_ctrl bash_path_exec bash_long_or_path git";
        let word = class.split_once('_').map_or(&*class, |(_, word)| word);
        let is_listed = SHIPPED.contains(&format!("\"{word}\"")) || SHIPPED.contains(&format!("\n{class} = "));
        prop_assert!(is_listed || coarse.split(' ').any(|known| known == class), "{}", class);
    }

    #[test]
    fn a_normal_path_stays_as_it_is(path in "[ab./\\\\:C]{0,16}", cwd in prop::option::of("(/|C:\\\\)[ab./]{0,8}")) {
        let once = normal_path(path.as_bytes(), cwd.as_deref().map(str::as_bytes));
        prop_assert_eq!(&normal_path(&once, None), &once);
        if once.starts_with(b"/") || once.starts_with(b"C:/") {
            prop_assert_eq!(normal_path(&once, Some(b"/elsewhere")), once);
        }
    }
}
