# The shell of a page: reads `MODE FILE`, runs the block in FILE, writes its status. It ends where a block fails.
# What a block prints is in FILE.out; the line of the command that runs, in the file AT.
set -euo pipefail -o functrace
__serve() {
  # Which starts none.
  case " $* " in *" --check "*) acpd serve "$@"; return ;; esac
  local __line
  # It is killed at the end of the page, and its agents are to end with it.
  exec {__served}< <(ACPD_CONTINUITY_KEEP=0s exec acpd serve "$@" 2>>"$__log")
  read -r -t 120 __line <&"$__served" || { cat "$__log" >&2; return 1; }
  printf '%s\n' "$__line"
}
# The next line begins before it listens, as behind `acpd serve &`. A command waits a second for a daemon that holds no lock yet, and a
# busy machine may need longer to begin it.
__serve_now() {
  exec {__served}< <(ACPD_CONTINUITY_KEEP=0s exec acpd serve "$@" 2>>"$__log")
  until [[ -s ~/.local/state/acpd/daemon.lock ]] || ! kill -0 $! 2>/dev/null; do command sleep 0.01; done
}
__log=$1 __at=$2
while read -r __mode __file; do
  __status=0
  trap '[[ ${BASH_SOURCE[0]} != "$__file" ]] || printf "%s" "$LINENO" >"$__at"' DEBUG
  case $__mode in
    here) . "$__file" </dev/null >"$__file.out" 2>&1 ;;
    apart)
      set +e
      (set -e; . "$__file") </dev/null >"$__file.out" 2>&1
      __status=$?
      set -e
      ;;
    typed)
      set +e
      TERM=xterm-256color SHELL=$BASH script --quiet --return --flush /dev/null \
        --command "stty cols 100 rows 40; exec bash -euo pipefail '$__file'" <"$__file.keys" >"$__file.out" 2>&1
      __status=$?
      set -e
      ;;
  esac
  trap - DEBUG
  echo "$__status"
done
