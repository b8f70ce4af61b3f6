job "web" {
  group "server" {
    network {
      mode = "bridge"
    }
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
    }
  }
}
