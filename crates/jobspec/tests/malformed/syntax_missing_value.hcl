job "web" {
  type =
}
