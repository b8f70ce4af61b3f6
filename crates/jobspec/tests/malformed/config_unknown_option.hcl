job "web" {
  group "server" {
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        arguments = ["-c", "true"]
        cgroup_v2_override = "x"
      }
    }
  }
}
