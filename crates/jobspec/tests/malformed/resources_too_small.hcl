job "web" {
  group "server" {
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
      resources {
        cpu        = 0
        memory     = 5
        memory_max = 4
      }
    }
  }
}
